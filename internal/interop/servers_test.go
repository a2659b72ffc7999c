//go:build linux

package interop_test

import (
	"github.com/mcppool/mcppool"
)

// subject is a real server, and how it is to be used.
type subject struct {
	name string // in the table, and of the test
	sdk  string // what it is made with

	// One of these says what it is.
	npm string // a package of npm/package-lock.json
	gop string // a package for go install, with its version

	bin  string // of the npm package: the program in node_modules/.bin, or a path below node_modules
	args []string
	env  map[string]string
	dir  mcppool.PrivateDir
	cwd  bool // its working folder is that of its session

	policy mcppool.Policy
	set    string // the settings, as the table shows them
	why    string

	// put leaves a text in the session, and get returns an answer with all the texts that are
	// there. One that has no state has a get alone, whose answer has the text.
	put func(text string) mcppool.Call
	get func(text string) mcppool.Call
	// slow takes half a minute at least; nil when it has no such tool.
	slow func() mcppool.Call
	// big has a text of many megabytes among its arguments.
	big func(text string) mcppool.Call

	progress bool // slow tells of its progress
	many     int  // sessions at once; 30 unless it is heavy
	gate     bool // it is tried in the gate, too
}

func call(tool string, pairs ...any) mcppool.Call {
	args := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		args[pairs[i].(string)] = pairs[i+1]
	}
	return mcppool.Call{Tool: tool, Args: args}
}

// with makes a call of a tool that takes one text, and asks for others as they are.
func with(tool, arg string, others ...any) func(string) mcppool.Call {
	return func(text string) mcppool.Call { return call(tool, append([]any{arg, text}, others...)...) }
}

// just is the call whatever the text.
func just(tool string, pairs ...any) func(string) mcppool.Call {
	return func(string) mcppool.Call { return call(tool, pairs...) }
}

const (
	goSDK = "github.com/modelcontextprotocol/go-sdk/examples/server/"
	atSDK = "@v1.8.0"
	mcpGo = "github.com/mark3labs/mcp-go/examples/"
	atMCP = "@v1.2.1"
	inDir = mcppool.DirPerScope

	zero      = "none"
	stateless = "it keeps nothing: the default is right, and `Mode: Shared` saves processes"
	ownDir    = "its file would be everybody's, and two processes overwrite each other's"
	inProcess = "its state is in its process"
)

// entity is the call that adds to a graph of the memory servers.
func entity(text string) mcppool.Call {
	return call("create_entities", "entities", []any{map[string]any{"name": text, "entityType": "word", "observations": []string{"x"}}})
}

// subjects are all the servers, in the order of the table.
func subjects() []*subject {
	all := official()
	all = append(all, browsers()...)
	all = append(all, popular()...)
	all = append(all, binaries()...)
	return append(all, goes()...)
}

func official() []*subject {
	const scope = "@modelcontextprotocol/"
	return []*subject{
		{
			name: "everything", sdk: "TypeScript", npm: scope + "server-everything", bin: "mcp-server-everything",
			set: zero, why: stateless,
			get: with("echo", "message"), big: with("echo", "message"),
			slow:     func() mcppool.Call { return call("trigger-long-running-operation", "duration", 60, "steps", 120) },
			progress: true, gate: true,
		},
		{
			name: "filesystem", sdk: "TypeScript", npm: scope + "server-filesystem", bin: "mcp-server-filesystem",
			args: []string{"${mcppool.dir}"}, dir: inDir, cwd: true,
			set: "`PrivateDir: DirPerScope`, the folder as its argument", why: "each conversation has files of its own",
			put: with("write_file", "content", "path", "note.txt"), get: just("read_text_file", "path", "note.txt"),
			big: with("write_file", "content", "path", "big.txt"), gate: true,
		},
		{
			name: "memory", sdk: "TypeScript", npm: scope + "server-memory", bin: "mcp-server-memory",
			env: map[string]string{"MEMORY_FILE_PATH": "${mcppool.dir}/memory.json"}, dir: inDir,
			set: "`PrivateDir: DirPerScope`, `MEMORY_FILE_PATH` in it", why: ownDir,
			put: entity, get: just("read_graph"), big: entity, gate: true,
		},
		{
			name: "sequential-thinking", sdk: "TypeScript", npm: scope + "server-sequential-thinking", bin: "mcp-server-sequential-thinking",
			set: zero, why: inProcess,
			put: with("sequentialthinking", "branchId", "thought", "x", "nextThoughtNeeded", true, "thoughtNumber", 1, "totalThoughts", 2, "branchFromThought", 1),
			get: just("sequentialthinking", "thought", "y", "nextThoughtNeeded", true, "thoughtNumber", 1, "totalThoughts", 2),
			big: with("sequentialthinking", "thought", "nextThoughtNeeded", true, "thoughtNumber", 1, "totalThoughts", 2),
		},
	}
}

func browsers() []*subject {
	return []*subject{
		{
			name: "playwright", sdk: "TypeScript", npm: "@playwright/mcp", bin: "playwright-mcp",
			args: []string{"--headless", "--isolated", "--no-sandbox", "--executable-path", "/usr/bin/chromium", "--output-dir", "${mcppool.dir}"}, dir: inDir,
			set: "`PrivateDir: DirPerScope` for `--output-dir`, `--isolated`", why: "two browsers can't share a profile; with `--user-data-dir` take `Mode: Exclusive` and `TermFirst`, or the last cookies are lost",
			put: page("browser_navigate"), get: just("browser_snapshot"),
			big:  with("browser_press_key", "key"),
			slow: func() mcppool.Call { return call("browser_wait_for", "time", 60) },
			many: 4, gate: true,
		},
		{
			name: "chrome-devtools", sdk: "TypeScript", npm: "chrome-devtools-mcp", bin: "chrome-devtools-mcp",
			args: []string{"--headless", "--isolated", "--executablePath", "/usr/bin/chromium", "--chromeArg=--no-sandbox", "--no-usage-statistics"},
			set:  "`--isolated`", why: "a second browser on one profile fails in every call",
			put: page("new_page"), get: just("list_pages"), big: with("list_pages", "text"), many: 4,
		},
	}
}

// page is a call of a tool that opens a page with a text in its URL and title.
func page(tool string) func(string) mcppool.Call {
	return func(text string) mcppool.Call { return call(tool, "url", site+"/"+text) }
}

func popular() []*subject {
	sleep := map[string]any{"command": "sleep 60"}
	return []*subject{
		{
			name: "desktop-commander", sdk: "TypeScript", npm: "@wonderwhy-er/desktop-commander", bin: "desktop-commander",
			args: []string{"--no-onboarding"}, env: map[string]string{"HOME": "${mcppool.dir}"}, dir: inDir,
			set: "`PrivateDir: DirPerScope` for `HOME`", why: "its settings and its log are below `HOME`; it doesn't end on end of input",
			put: func(text string) mcppool.Call {
				return call("start_process", "command", "echo "+text+" >~/note", "timeout_ms", 5000)
			},
			get:  just("start_process", "command", "sleep 1; cat ~/note", "timeout_ms", 5000),
			big:  with("list_directory", "path"),
			slow: func() mcppool.Call { return call("start_process", "command", "sleep 60", "timeout_ms", 60000) }, many: 8,
		},
		{
			name: "code-runner", sdk: "TypeScript", npm: "mcp-server-code-runner", bin: "mcp-server-code-runner", set: zero, why: stateless,
			get: func(text string) mcppool.Call {
				return call("run-code", "languageId", "shellscript", "code", "echo "+text)
			},
			big:  with("run-code", "code", "languageId", "none"),
			slow: func() mcppool.Call { return call("run-code", "languageId", "shellscript", "code", "sleep 60") },
		},
		{
			name: "commands", sdk: "TypeScript", npm: "@agent-infra/mcp-server-commands", bin: "mcp-server-commands", set: zero, why: stateless,
			get:  func(text string) mcppool.Call { return call("run_command", "command", "echo "+text) },
			big:  with("run_command", "command"),
			slow: func() mcppool.Call { return mcppool.Call{Tool: "run_command", Args: sleep} }, many: 10,
		},
		{
			name: "knowledge-graph", sdk: "TypeScript", npm: "@itseasy21/mcp-knowledge-graph", bin: "mcp-knowledge-graph",
			args: []string{"--memory-path", "${mcppool.dir}/memory.jsonl"}, dir: inDir,
			set: "`PrivateDir: DirPerScope`, `--memory-path` in it", why: ownDir, put: entity, get: just("read_graph"), big: entity,
		},
		{
			name: "memory-libsql", sdk: "TypeScript, tmcp", npm: "mcp-memory-libsql", bin: "mcp-memory-libsql",
			env: map[string]string{"LIBSQL_URL": "file:${mcppool.dir}/memory.db"}, dir: inDir,
			set: "`PrivateDir: DirPerScope`, `LIBSQL_URL` in it", why: "a database for each conversation",
			put: entity, get: just("read_graph"), big: entity,
		},
		{
			name: "shrimp-task-manager", sdk: "TypeScript", npm: "mcp-shrimp-task-manager", bin: "mcp-shrimp-task-manager",
			env: map[string]string{"DATA_DIR": "${mcppool.dir}"}, dir: inDir,
			set: "`PrivateDir: DirPerScope` for `DATA_DIR`", why: ownDir,
			get: with("process_thought", "thought", "thought_number", 1, "total_thoughts", 2, "next_thought_needed", false, "stage", "x"),
			big: with("process_thought", "thought", "thought_number", 1, "total_thoughts", 2, "next_thought_needed", false, "stage", "x"), many: 10,
		},
		{
			name: "taskmanager", sdk: "TypeScript", npm: "@kazuph/mcp-taskmanager", bin: "mcp-taskmanager",
			env: map[string]string{"TASK_MANAGER_FILE_PATH": "${mcppool.dir}/tasks.json"}, dir: inDir,
			set: "`PrivateDir: DirPerScope`, `TASK_MANAGER_FILE_PATH` in it", why: ownDir,
			put: plan, get: just("list_requests"), big: plan, many: 10,
		},
		{
			name: "time", sdk: "TypeScript", npm: "time-mcp", bin: "time-mcp", set: zero, why: stateless,
			get: just("days_in_month", "date", "2024-02-01"), big: with("days_in_month", "date"), many: 10,
		},
		{
			name: "hello-world", sdk: "TypeScript", npm: "mcp-hello-world", bin: "mcp-hello-world", set: zero, why: stateless,
			get: with("echo", "message"), big: with("echo", "message"), many: 10,
		},
		{
			name: "context7", sdk: "TypeScript", npm: "@upstash/context7-mcp", bin: "context7-mcp", set: zero, why: stateless,
			get: with("query-docs", "libraryId", "query", "x"), big: with("query-docs", "query", "libraryId", "x"), many: 10,
		},
		{
			name: "fast-filesystem", sdk: "TypeScript", npm: "fast-filesystem-mcp", bin: "fast-filesystem-mcp",
			args: []string{"--allow", "${mcppool.dir}"}, dir: inDir, cwd: true,
			set: "`PrivateDir: DirPerScope`, `--allow` it", why: "each conversation has files of its own",
			put: with("fast_write_file", "content", "path", "note.txt"), get: just("fast_read_file", "path", "note.txt"),
			big: with("fast_write_file", "content", "path", "big.txt"), many: 10,
		},
		{
			name: "sequentialthinking-tools", sdk: "TypeScript, tmcp", npm: "mcp-sequentialthinking-tools", bin: "mcp-sequentialthinking-tools", set: zero, why: inProcess,
			put: thought, get: just("sequentialthinking_tools", "available_mcp_tools", []string{"a"}, "thought", "y", "next_thought_needed", true, "thought_number", 1, "total_thoughts", 2),
			big: thought,
		},
		{
			name: "fetch", sdk: "TypeScript", npm: "mcp-fetch-server", bin: "mcp-fetch-server", set: zero, why: stateless,
			get: just("fetch_txt", "url", "http://127.0.0.1:1/"), big: with("fetch_txt", "url"), many: 10,
		},
	}
}

func thought(text string) mcppool.Call {
	return call("sequentialthinking_tools", "available_mcp_tools", []string{"a"}, "thought", "x", "branch_id", text, "branch_from_thought", 1,
		"next_thought_needed", true, "thought_number", 1, "total_thoughts", 2)
}

func plan(text string) mcppool.Call {
	return call("request_planning", "originalRequest", text, "tasks", []any{map[string]any{"title": "x", "description": "x"}})
}

// binaries are programs in other languages that npm brings.
func binaries() []*subject {
	return []*subject{
		{
			name: "excel", sdk: "mcp-go", npm: "@negokaz/excel-mcp-server", bin: "excel-mcp-server", set: zero, why: "it writes to the files that a call names",
			get: with("excel_describe_sheets", "fileAbsolutePath"), big: with("excel_describe_sheets", "fileAbsolutePath"),
		},
		{
			name: "podman", sdk: "Go", npm: "podman-mcp-server-linux-amd64", bin: "podman-mcp-server-linux-amd64/bin/podman-mcp-server-linux-amd64", set: zero, why: "its state is the container runtime's",
			get: with("container_inspect", "name"), big: with("container_inspect", "name"),
		},
		{
			name: "mcp-time", sdk: "mcp-go", npm: "mcp-time-linux-x64", bin: "mcp-time-linux-x64/bin/mcp-time", set: zero, why: stateless,
			get: with("relative_time", "text"), big: with("relative_time", "text"),
		},
		{
			name: "leanspec", sdk: "Rust", npm: "@leanspec/mcp-linux-x64", bin: "@leanspec/mcp-linux-x64/leanspec-mcp", dir: inDir, cwd: true,
			set: "`PrivateDir: DirPerScope` as `Dir`", why: "it reads and writes below its working folder",
			get: with("search_specs", "query"), big: with("search_specs", "query"),
		},
	}
}

// goes are Go programs.
func goes() []*subject {
	return []*subject{
		{
			name: "go-sdk everything", sdk: "Go", gop: goSDK + "everything" + atSDK, set: zero, why: stateless,
			get: with("greet", "name"), big: with("greet", "name"),
		},
		{
			name: "go-sdk memory", sdk: "Go", gop: goSDK + "memory" + atSDK, args: []string{"-memory", "${mcppool.dir}/memory.json"}, dir: inDir,
			set: "`PrivateDir: DirPerScope`, `-memory` in it", why: ownDir, put: entity, get: just("read_graph"), big: entity, gate: true,
		},
		{
			name: "go-sdk sequentialthinking", sdk: "Go", gop: goSDK + "sequentialthinking" + atSDK, set: zero, why: inProcess,
			put: with("start_thinking", "problem", "sessionId", "s"), get: just("review_thinking", "sessionId", "s"), big: with("start_thinking", "problem", "sessionId", "big"),
		},
		{
			name: "go-sdk hello", sdk: "Go", gop: goSDK + "hello" + atSDK, set: zero, why: stateless,
			get: with("greet", "name"), big: with("greet", "name"),
		},
		{
			name: "mcp-go everything", sdk: "mcp-go", gop: mcpGo + "everything" + atMCP, set: zero, why: stateless,
			get: with("echo", "message"), big: with("echo", "message"),
			slow:     func() mcppool.Call { return call("longRunningOperation", "duration", 60, "steps", 120) },
			progress: true, gate: true,
		},
		{
			name: "mcp-go typed_tools", sdk: "mcp-go", gop: mcpGo + "typed_tools" + atMCP, set: zero, why: stateless,
			get: with("greeting", "name"), big: with("greeting", "name"),
		},
		{
			name: "mcp-go structured", sdk: "mcp-go", gop: mcpGo + "structured_input_and_output" + atMCP, set: zero, why: stateless,
			get: with("get_weather", "location"), big: with("get_weather", "location"),
		},
		{
			name: "gopls", sdk: "Go", gop: "golang.org/x/tools/gopls@v0.23.0", args: []string{"mcp"}, cwd: true, dir: inDir,
			set: "`Dir`: the module's folder", why: "it serves the module of its working folder; its cache is shared by all processes",
			get: with("go_search", "query"), big: with("go_search", "query"), many: 8,
		},
	}
}
