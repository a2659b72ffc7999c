package mcppool_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// mark is in each secret of these tests more than once, so that a part of one
// shows too.
const mark = "hush"

// forms are the ways in which servers write what they were given.
func forms(s string) []string {
	asJSON, _ := json.Marshal(s)
	return []string{
		s, string(asJSON), fmt.Sprintf("%q", s), url.QueryEscape(s), url.PathEscape(s), url.User(s).String(),
	}
}

// given are the secrets that this process got, in all forms.
func given() (all []string) {
	for _, s := range append(os.Args[1:], os.Environ()...) {
		if name, value, ok := strings.Cut(s, "="); ok && !strings.ContainsAny(name, " :{-/") {
			s = value // of a variable
		}
		if strings.Contains(s, mark) {
			all = append(all, forms(s)...)
		}
	}
	return all
}

// straddle pads a secret so that its middle is n bytes from the front and from
// the back.
func straddle(secret string, n int) string {
	half := len(secret) / 2
	return strings.Repeat("-", n-half) + secret + strings.Repeat("-", n-(len(secret)-half))
}

// serveLeaky is a server that tells its secrets wherever it can.
func serveLeaky() {
	secrets := given()
	longest := slices.MaxFunc(secrets, func(a, b string) int { return len(a) - len(b) })
	said := strings.Join(secrets, "\n")
	token := os.Getenv("TOKEN")
	fmt.Fprintln(os.Stderr, said)
	fmt.Fprintln(os.Stderr, straddle(token, 4<<10))
	fmt.Println("no message:", straddle(token, 256-len("no message: ")))
	switch os.Getenv("START") {
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot start with", token)
		os.Exit(3)
	case "half a line":
		fmt.Fprint(os.Stderr, "cannot start with ", token[:len(token)/2])
		os.Exit(3)
	}
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string `json:"name"`
				Arguments struct {
					Code int `json:"code"`
					MS   int `json:"ms"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &req) != nil || req.ID == nil {
			continue
		}
		answer := func(member, value string) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"%s":%s}`+"\n", req.ID, member, value)
		}
		refuse := func(code int) {
			answer("error", fmt.Sprintf(`{"code":%d,"message":%s,"data":{"requested":%s,"supported":[%s],"capability":%[2]s,"elicitations":[{"url":%[2]s,"message":%[2]s}]}}`,
				code, quoted(said), quoted(token), quoted(token)))
		}
		text := `{"content":[{"type":"text","text":` + quoted(said) + `}],"structuredContent":{` + quoted(token) + `:1}`
		switch req.Method {
		case "server/discover":
			refuse(-32601)
		case "initialize":
			switch version := "2025-06-18"; os.Getenv("START") {
			case "refuse":
				refuse(-32603)
			case "version":
				version = token
				fallthrough
			default:
				answer("result", fmt.Sprintf(`{"protocolVersion":%s,"serverInfo":{"name":%s,"version":%[2]s,"title":%[2]s},"instructions":%s,"capabilities":{"tools":{},"experimental":{%[2]s:{%[2]s:%[2]s}}}}`,
					quoted(version), quoted(token), quoted(said)))
			}
		case "tools/list":
			answer("result", `{"tools":[{"name":"tell","description":`+quoted(said)+`,"inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			switch req.Params.Name {
			case "tell":
				answer("result", text+"}")
			case "fail":
				answer("result", text+`,"isError":true}`)
			case "refuse":
				refuse(req.Params.Arguments.Code)
			case "refuse oddly": // what is no error object is told in part
				answer("error", "["+quoted(straddle(token, 256-2))+"]")
			case "undecodable":
				answer("result", `{"inputRequests":{"a":{"method":`+quoted(said)+`}}}`)
			case "notify":
				fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%s}}`+"\n", quoted(said))
				answer("result", text+"}")
			case "sleep":
				time.Sleep(time.Duration(req.Params.Arguments.MS) * time.Millisecond)
				answer("result", text+"}")
			case "die":
				// The tail that is kept begins in the middle of a secret.
				fmt.Fprint(os.Stderr, straddle(longest, 8<<10))
				os.Exit(7)
			case "die cut":
				fmt.Fprint(os.Stderr, "dying with ", token[:len(token)/2])
				os.Exit(7)
			case "die garbled":
				fmt.Printf(`{"jsonrpc":"2.0","result":%s`+"\n", said)
				os.Exit(7)
			}
		default:
			refuse(-32601)
		}
	}
}
