package toolbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

// catalogOfReal is a pool whose servers list what real ones do, and their catalog.
func catalogOfReal(t *testing.T) (*mcppool.Pool, toolbox.Catalog) {
	t.Helper()
	files, err := filepath.Glob("../internal/modelapi/testdata/servers/*.json")
	require.NoError(t, err)
	lists := make(map[string][]mcp.Tool)
	var ids []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var list struct {
			Tools []struct {
				Name, Title, Description string
				InputSchema              json.RawMessage
			}
		}
		require.NoError(t, json.Unmarshal(raw, &list))
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		ids = append(ids, id)
		for _, tool := range list.Tools {
			lists[id] = append(lists[id], mcp.Tool{Name: tool.Name, Title: tool.Title, Description: tool.Description, RawInputSchema: tool.InputSchema})
		}
	}
	f := &fakes{list: func(_ context.Context, name string) ([]mcp.Tool, error) { return lists[name], nil }}
	return newPool(t, f), static(t, entries(ids...)...)
}

func toolsFor(t testing.TB, b *toolbox.Box, c toolbox.Conversation) []string {
	t.Helper()
	set, err := b.ToolsFor(t.Context(), c)
	require.NoError(t, err)
	return names(set)
}

func TestTheRightToolIsAmongTheFirstThatASearchFinds(t *testing.T) {
	pool, catalog := catalogOfReal(t)
	b := boxOf(t, pool, catalog, &toolbox.Options{Search: &toolbox.Search{}})
	require.Greater(t, len(tools(t, b).Tools), 250, "without a conversation all are offered")
	for query, want := range map[string]string{
		"create an issue on github":            "mcp__github__create_issue",
		"take a screenshot of the web page":    "mcp__playwright__browser_take_screenshot",
		"read file":                            "mcp__filesystem__read_file",
		"list kubernetes pods logs":            "mcp__kubernetes__kubectl_logs",
		"crawl a website with firecrawl":       "mcp__firecrawl__firecrawl_crawl",
		"send a slack message":                 "mcp__slack__slack_post_message",
		"grafana dashboards search":            "mcp__grafana-go__search_dashboards",
		"remember entities in knowledge graph": "mcp__memory__create_entities",
		"library documentation":                "mcp__context7__query-docs",
	} {
		c := toolbox.Conversation{Thread: query}
		require.Equal(t, []string{toolbox.SearchTool}, toolsFor(t, b, c))
		args, err := json.Marshal(map[string]string{"query": query})
		require.NoError(t, err)
		out := b.Dispatch(t.Context(), toolbox.SearchTool, args, c)
		require.NoError(t, out.Err)
		top := strings.Join(strings.SplitN(out.Text, "\n", 7)[1:6], "\n")
		require.Contains(t, top, want, query)
		require.Contains(t, toolsFor(t, b, c), want)
		require.Len(t, toolsFor(t, b, c), 11)
	}
}

func many(t *testing.T, n int, search toolbox.Search) *toolbox.Box {
	t.Helper()
	f := &fakes{list: func(context.Context, string) ([]mcp.Tool, error) {
		var list []mcp.Tool
		for i := range n {
			list = append(list, mcp.NewTool(fmt.Sprintf("tool%03d", i), mcp.WithDescription("Does many things.")))
		}
		return list, nil
	}}
	return newBox(t, f, &toolbox.Options{Search: &search}, "s")
}

func TestFewToolsNeedNoSearch(t *testing.T) {
	require.NotContains(t, toolsFor(t, many(t, 100, toolbox.Search{}), conv), toolbox.SearchTool)
	require.Equal(t, []string{toolbox.SearchTool}, toolsFor(t, many(t, 101, toolbox.Search{}), conv))
}

func TestWhatWasFoundStaysForTheConversationUpToABound(t *testing.T) {
	b := many(t, 200, toolbox.Search{Results: 2, Keep: 3, Always: []string{"mcp__s__tool007"}})
	search := func(q string) toolbox.Output { return dispatch(t, b, toolbox.SearchTool, `{"query":"`+q+`"}`) }
	require.Equal(t, "These tools are available now:\nmcp__s__tool001: Does many things.", search("tool001").Text)
	require.Equal(t, []string{toolbox.SearchTool, "mcp__s__tool001", "mcp__s__tool007"}, toolsFor(t, b, conv))
	search("tool002")
	search("tool003")
	search("tool001")
	search("tool004")
	require.Equal(t, []string{toolbox.SearchTool, "mcp__s__tool001", "mcp__s__tool003", "mcp__s__tool004", "mcp__s__tool007"}, toolsFor(t, b, conv))
	require.Len(t, toolsFor(t, b, toolbox.Conversation{Thread: "other"}), 2)
	require.NoError(t, dispatch(t, b, "mcp__s__tool099", "").Err, "a name is right whether it was found or not")
	b.Forget(conv)
	require.Len(t, toolsFor(t, b, conv), 2)
}

func TestARareWordCountsMoreThanACommonOne(t *testing.T) {
	list := []mcp.Tool{mcp.NewTool("archive", mcp.WithDescription("Makes a zip."))}
	for i := range 150 {
		list = append(list, mcp.NewTool(fmt.Sprintf("file_%d", i)))
	}
	f := &fakes{list: func(context.Context, string) ([]mcp.Tool, error) { return list, nil }}
	b := newBox(t, f, &toolbox.Options{Search: &toolbox.Search{}}, "s")
	out := dispatch(t, b, toolbox.SearchTool, `{"query":"zip files"}`)
	require.True(t, strings.HasPrefix(out.Text, "These tools are available now:\nmcp__s__archive"), out.Text)
}

func TestASearchThatFindsNothingSaysSo(t *testing.T) {
	b := many(t, 200, toolbox.Search{})
	require.Equal(t, "No tool fits. Try other words.", dispatch(t, b, toolbox.SearchTool, `{"query":"zebra"}`).Text)
	for _, args := range []string{"", "{}", `{"query":1}`, `{"query":" "}`} {
		out := dispatch(t, b, toolbox.SearchTool, args)
		require.Equal(t, "Error: MCP tool 'search_tools' got invalid arguments: query is not a text", out.Text)
	}
	require.ErrorIs(t, dispatch(t, newBox(t, &fakes{}, nil, "s"), toolbox.SearchTool, `{"query":"a"}`).Err, toolbox.ErrBadName, "without the option there is none")
}
