package mcppoolotel

import (
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/mcppool/mcppool"
)

// The attributes of the conventions.
const (
	keyMethod          attribute.Key = "mcp.method.name"
	keySession         attribute.Key = "mcp.session.id"
	keyProtocol        attribute.Key = "mcp.protocol.version"
	keyTool            attribute.Key = "gen_ai.tool.name"
	keyOperation       attribute.Key = "gen_ai.operation.name"
	keyStatus          attribute.Key = "rpc.response.status_code"
	keyErrorType       attribute.Key = "error.type"
	keyTransport       attribute.Key = "network.transport"
	keyNetworkProtocol attribute.Key = "network.protocol.name"
	keyAddress         attribute.Key = "server.address"
	keyPort            attribute.Key = "server.port"
	keyRequestID       attribute.Key = "jsonrpc.request.id"
	keyPID             attribute.Key = "process.pid"
)

// The attributes of the pool's own.
const (
	keyPool    attribute.Key = "mcppool.pool.name"
	keyServer  attribute.Key = "mcppool.server"
	keyWaitFor attribute.Key = "mcppool.wait.for"
	keySpare   attribute.Key = "mcppool.connect.spare"
	keyState   attribute.Key = "mcppool.session.state"
	keyReason  attribute.Key = "mcppool.close.reason"
	keyOutcome attribute.Key = "mcppool.call.outcome"
)

const (
	methodCall    = "tools/call"
	operationTool = "execute_tool"
	// other is the conventions' word for what has no value of its own.
	other = "_OTHER"
	// sentEvent parts the waits of a call from the call itself.
	sentEvent = "mcppool.call.sent"
)

func callAttrs(tool string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{keyMethod.String(methodCall), keyOperation.String(operationTool)}
	if tool != "" {
		attrs = append(attrs, keyTool.String(tool))
	}
	return attrs
}

// originAttrs are for spans alone: there is no end of sessions.
func originAttrs(from mcppool.Origin) []attribute.KeyValue {
	return []attribute.KeyValue{keySession.String(from.SessionID), keyServer.String(text(from.Server))}
}

// requestAttrs are for spans alone: each request has an id of its own.
func requestAttrs(id int64) []attribute.KeyValue {
	if id == 0 {
		return nil
	}
	return []attribute.KeyValue{keyRequestID.String(strconv.FormatInt(id, 10))}
}

func spanName(tool string) string {
	return strings.TrimSpace(methodCall + " " + text(tool))
}

// transportAttrs says how a server is reached.
func transportAttrs(http bool) []attribute.KeyValue {
	if http {
		return []attribute.KeyValue{keyTransport.String("tcp"), keyNetworkProtocol.String("http")}
	}
	return []attribute.KeyValue{keyTransport.String("pipe")}
}

// addressAttrs says, for spans alone, where a server is reached.
func addressAttrs(srv *mcppool.Server) []attribute.KeyValue {
	if !srv.IsHTTP() {
		return nil
	}
	u, err := url.Parse(srv.URL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	port, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
	case u.Scheme == "https":
		port = 443
	default:
		port = 80
	}
	return []attribute.KeyValue{keyAddress.String(text(u.Hostname())), keyPort.Int(port)}
}
