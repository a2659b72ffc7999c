package toolbox

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
)

// Search offers a tool that finds tools, where there are more than a model API takes or
// a model can choose among. A conversation with a thread is offered the search and the
// tools that it has found so far; a tool keeps its name.
type Search struct {
	// Above is how many tools are offered as they are; default 100.
	Above int
	// Results is how many tools one search finds at most; default 10.
	Results int
	// Keep is how many found tools a conversation is offered at most, the latest found;
	// default 50.
	Keep int
	// Always are the names of tools that are offered without a search.
	Always []string
}

func (s *Search) above() int   { return orDefault(s.Above, 100) }
func (s *Search) results() int { return max(orDefault(s.Results, 10), 1) }
func (s *Search) keep() int    { return max(orDefault(s.Keep, 50), 1) }

// SearchTool is the name of the tool that finds tools. No server's tool has it.
const SearchTool = "search_tools"

var searchSpec = &mcp.Tool{
	Name: SearchTool,
	Description: "Finds tools by what they do. There are more tools than are listed here: describe in a few words what you want to do, " +
		"and the tools that fit become available.",
	RawInputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"A few words, such as: create github issue"}},"required":["query"]}`),
}

// narrowed is the part of a set that a conversation is offered.
func (b *Box) narrowed(set *ToolSet, conv Conversation) *ToolSet {
	b.talks.mu.Lock()
	found := slices.Clone(b.talks.useLocked(conv.Scope()).found)
	b.talks.mu.Unlock()
	part := &ToolSet{Failed: set.Failed, Skipped: set.Skipped}
	part.Tools = append(part.Tools, Tool{Name: SearchTool, Spec: searchSpec})
	for _, t := range set.Tools {
		if slices.Contains(found, t.Name) || slices.Contains(b.opts.Search.Always, t.Name) {
			part.Tools = append(part.Tools, t)
		}
	}
	return part
}

// search answers a call of [SearchTool].
func (b *Box) search(set *ToolSet, args json.RawMessage, conv Conversation) Output {
	var q struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(args, &q); err != nil || strings.TrimSpace(q.Query) == "" {
		return failed("", SearchTool, &ArgsError{Err: errNoQuery}, 0)
	}
	hits := rank(set.Tools, q.Query, b.opts.Search.results())
	var text strings.Builder
	if len(hits) == 0 {
		text.WriteString("No tool fits. Try other words.")
	} else {
		text.WriteString("These tools are available now:")
	}
	names := make([]string, len(hits))
	for i, t := range hits {
		names[i] = t.Name
		text.WriteString("\n" + t.Name)
		if d := describe(t.Spec); d != "" {
			text.WriteString(": " + oneLine(d, maxFound))
		}
	}
	b.talks.find(conv.Scope(), names, b.opts.Search.keep())
	return Output{Content: Content{Text: text.String()}, Tool: SearchTool}
}

// maxFound bounds, in bytes, what is said of one tool that was found.
const maxFound = 200

// find adds to the tools that a conversation has found.
func (t *talks) find(scope string, names []string, keep int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.useLocked(scope)
	for _, name := range names {
		c.found = slices.DeleteFunc(c.found, func(have string) bool { return have == name })
		c.found = append(c.found, name)
	}
	c.found = slices.Clone(c.found[max(0, len(c.found)-keep):])
}

func describe(t *mcp.Tool) string {
	if t.Description != "" {
		return t.Description
	}
	return cmp.Or(t.Title, t.Annotations.Title)
}

// rank returns the tools that have words of the query, the best first. A word in a name
// counts most, and one that few tools have more than one that many have.
func rank(tools []Tool, query string, most int) []*Tool {
	words := wordsOf(query)
	matches := make([][]int, len(words)) // by word and tool: how well it fits
	having := make([]int, len(words))
	for w, word := range words {
		matches[w] = make([]int, len(tools))
		for i := range tools {
			if matches[w][i] = fit(&tools[i], word); matches[w][i] > 0 {
				having[w]++
			}
		}
	}
	scores := make([]int, len(tools))
	var hits []int
	for i := range tools {
		for w := range words {
			if matches[w][i] > 0 {
				scores[i] += matches[w][i] * (1 + 8*(len(tools)-having[w])/len(tools))
			}
		}
		if scores[i] > 0 {
			hits = append(hits, i)
		}
	}
	slices.SortStableFunc(hits, func(a, b int) int { return scores[b] - scores[a] })
	best := make([]*Tool, 0, most)
	for _, i := range hits[:min(most, len(hits))] {
		best = append(best, &tools[i])
	}
	return best
}

// fit is how well a word fits a tool: 0 for not at all.
func fit(t *Tool, word string) int {
	best := 0
	for _, field := range []struct {
		text  string
		value int
	}{
		{t.Spec.Name, 12}, {t.Server, 8}, {t.Spec.Title + " " + t.Spec.Annotations.Title, 8}, {t.Spec.Description, 4},
	} {
		for _, have := range wordsOf(field.text) {
			switch {
			case have == word:
				best = max(best, field.value)
			case len(word) >= 3 && strings.HasPrefix(have, word), len(have) >= 3 && strings.HasPrefix(word, have):
				best = max(best, field.value/2)
			}
		}
	}
	return best
}

// wordsOf are the words of a text, in lower case and without the plural's s; those of
// camelCase and snake_case too.
func wordsOf(s string) (words []string) {
	var b []rune
	end := func() {
		if w := strings.ToLower(string(b)); w != "" {
			if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
				w = w[:len(w)-1]
			}
			if !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
		b = b[:0]
	}
	lower := false
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && lower:
			end()
			fallthrough
		default:
			b = append(b, r)
		}
		lower = unicode.IsLower(r)
	}
	end()
	return words
}
