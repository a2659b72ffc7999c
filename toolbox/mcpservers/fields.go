package mcpservers

import "regexp"

// fieldMeaning is what a field of a server says, however its host calls it.
type fieldMeaning uint8

const (
	fieldUnknown fieldMeaning = iota
	fieldCommand
	fieldArgs
	fieldEnv
	fieldEnvFile
	fieldEnvNames // variables that are handed on
	fieldDir
	fieldURL
	fieldHTTPURL // says the transport too
	fieldHeaders
	fieldEnvHeaders // headers by the variable that holds them
	fieldBearerEnv  // the variable that holds a token
	fieldBearer
	fieldRequestOptions
	fieldTransport
	fieldProtocol
	fieldTitle
	fieldOn
	fieldOff
	fieldInclude
	fieldExclude
	fieldTools
	fieldApprove
	fieldTrust
	fieldTimeout
	fieldStartSeconds
	fieldStartMillis
	fieldCallSeconds
	fieldSource
	fieldRestricts // can't be obeyed here
	fieldNeeded    // the server doesn't work without it, and it can't be had here
	fieldSignIn
	fieldForPeople // of no meaning for who runs the server
)

// fieldNames are the fields of all hosts: no two use one name for things that
// differ in more than their unit.
var fieldNames = map[string]fieldMeaning{
	"command": fieldCommand, "cmd": fieldCommand,
	"args": fieldArgs,
	"env":  fieldEnv, "environment": fieldEnv, "envs": fieldEnv,
	"envFile": fieldEnvFile, "env_file": fieldEnvFile,
	"env_vars": fieldEnvNames, "env_keys": fieldEnvNames,
	"cwd": fieldDir, "working_directory": fieldDir, "workingDirectory": fieldDir,
	"url": fieldURL, "serverUrl": fieldURL, "server_url": fieldURL, "uri": fieldURL, "baseUrl": fieldURL, "httpUrl": fieldHTTPURL,
	"headers": fieldHeaders, "http_headers": fieldHeaders, "env_http_headers": fieldEnvHeaders,
	"bearer_token_env_var": fieldBearerEnv, "bearer_token": fieldBearer, "bearerToken": fieldBearer, "auth": fieldBearer, "apiKey": fieldBearer,
	"requestOptions": fieldRequestOptions,
	"type":           fieldTransport, "transport": fieldTransport, "transportType": fieldTransport, "transport_type": fieldTransport,
	"protocol": fieldProtocol,
	"name":     fieldTitle, "title": fieldTitle, "display_name": fieldTitle, "displayName": fieldTitle,

	"enabled": fieldOn, "enable": fieldOn, "active": fieldOn, "isActive": fieldOn, "is_active": fieldOn,
	"disabled": fieldOff, "disable": fieldOff, "isDisabled": fieldOff,

	"includeTools": fieldInclude, "include_tools": fieldInclude, "allowedTools": fieldInclude, "allowed_tools": fieldInclude,
	"enabledTools": fieldInclude, "enabled_tools": fieldInclude, "available_tools": fieldInclude, "availableTools": fieldInclude,
	"excludeTools": fieldExclude, "exclude_tools": fieldExclude, "disabledTools": fieldExclude, "disabled_tools": fieldExclude,
	"excludedTools": fieldExclude, "excluded_tools": fieldExclude, "deniedTools": fieldExclude, "denied_tools": fieldExclude,
	"tools":       fieldTools,
	"alwaysAllow": fieldApprove, "autoApprove": fieldApprove, "trust": fieldTrust,

	"timeout": fieldTimeout, "startup_timeout_sec": fieldStartSeconds, "startup_timeout_ms": fieldStartMillis,
	"tool_timeout_sec": fieldCallSeconds, "initTimeout": fieldStartMillis, "connectionTimeout": fieldStartMillis,

	"source": fieldSource,
	"oauth":  fieldSignIn, "authentication": fieldSignIn,
	"oauth_ref": fieldSignIn, "requiresOAuth": fieldSignIn, "oauthScopes": fieldSignIn, "scopes": fieldSignIn, "oauth_resource": fieldSignIn,
	"authProviderType": fieldNeeded, "targetAudience": fieldNeeded, "targetServiceAccount": fieldNeeded,
	"headersHelper": fieldNeeded, "tcp": fieldNeeded, "auth_provider": fieldNeeded,

	"sandbox": fieldRestricts, "sandboxEnabled": fieldRestricts, "include_tags": fieldRestricts, "exclude_tags": fieldRestricts,
	"experimental_environment":    fieldRestricts,
	"default_tools_approval_mode": fieldForPeople,

	"description": fieldForPeople, "icon": fieldForPeople, "iconPath": fieldForPeople, "iconUrl": fieldForPeople, "faviconUrl": fieldForPeople,
	"settings": fieldForPeople, "gallery": fieldForPeople, "version": fieldForPeople, "bundled": fieldForPeople, "required": fieldForPeople, "dev": fieldForPeople,
	"startup": fieldForPeople, "start_on_launch": fieldForPeople, "chatMenu": fieldForPeople, "serverInstructions": fieldForPeople,
	"watchPaths": fieldForPeople, "keep_alive": fieldForPeople, "extensionName": fieldForPeople, "remote": fieldForPeople,
	"tags": fieldForPeople, "provider": fieldForPeople, "author": fieldForPeople, "homepage": fieldForPeople, "stderr": fieldForPeople,
	"supports_parallel_tool_calls": fieldForPeople,
}

// taking and granting are words in the names of fields that say what a server
// may not, or may. A field that isn't known and restricts costs its server: what
// a file forbids must not happen because its word for it is new.
var (
	taking   = regexp.MustCompile(`(?i)block|deny|denied|disabl|disallow|exclud|filter|forbid|only|prohibit|read_?only|restrict|sandbox`)
	granting = regexp.MustCompile(`(?i)allow|enabl|include|permi`)
)

// mayRestrict reports whether a field that isn't known may take something away.
func mayRestrict(name string, n *node) bool {
	switch {
	case taking.MatchString(name):
		return n.kind != boolean || n.text == "true"
	case granting.MatchString(name):
		return n.kind != boolean || n.text == "false"
	}
	return false
}

// What to do about fields that can't be obeyed.
const (
	cantRestrict = "restricts the server in a way that isn't obeyed here: remove it if the server may run without, or switch the server off"
	cantHave     = `isn't done here: put what it would send into "headers", or remove it`
	noSignIn     = "signing in isn't done here: a server that wants it takes a token in headers"
)

// member reads one field: where is its full name, name its own.
func (r *entryReader) member(where, name string, n *node) {
	switch meaning := fieldNames[name]; meaning {
	case fieldCommand, fieldArgs, fieldEnv, fieldEnvFile, fieldEnvNames, fieldDir:
		r.local(where, meaning, n)
	case fieldURL, fieldHTTPURL, fieldHeaders, fieldEnvHeaders, fieldBearerEnv, fieldBearer, fieldRequestOptions:
		r.remote(where, meaning, n)
	case fieldInclude, fieldExclude, fieldTools, fieldApprove, fieldTrust:
		r.tools(where, meaning, n)
	case fieldTimeout, fieldStartSeconds, fieldStartMillis, fieldCallSeconds:
		r.timeout(where, meaning, n)
	case fieldTransport:
		r.readTransport(where, n)
	case fieldProtocol:
		r.protocol(where, n)
	case fieldTitle:
		if n.kind == text {
			r.e.Title = n.text
		}
	case fieldSource:
		if n.str() == "extension" {
			r.hostOnly = "comes with an extension of its editor, which only that can start: write its command and args"
		}
	case fieldRestricts:
		// VS Code keeps the rules of a sandbox that is switched off.
		if name == "sandbox" && r.unboxed {
			return
		}
		if n.kind != boolean || n.text == "true" {
			r.fail(where, cantRestrict)
		}
	case fieldNeeded:
		r.fail(where, cantHave)
	case fieldSignIn:
		if n.kind != boolean || n.text == "true" {
			r.warn(where, "has no effect: "+noSignIn)
		}
	case fieldOn, fieldOff, fieldForPeople:
		// The switches were read before all else.
	default:
		r.unknown(where, name, n)
	}
}

func (r *entryReader) unknown(where, name string, n *node) {
	if mayRestrict(name, n) {
		r.fail(where, `isn't known and may restrict the server: remove it, or write "disabled", "includeTools" or "excludeTools"`)
		return
	}
	r.warn(where, "isn't known and has no effect")
}
