package dialect

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// field describes a field of a server's entry: toolroom's name for it, the names in other
// products, and how it is read. Names are compared without case, - and _.
type field struct {
	name   string
	also   []string
	doc    string
	schema map[string]any
	read   func(r *reader, n *node)
}

// isNamed reports whether a key in a file names the field.
func (f field) isNamed(key string) bool {
	is := func(name string) bool { return normalizeName(name) == normalizeName(key) }
	return is(f.name) || slices.ContainsFunc(f.also, is)
}

// typeSchema returns the schema of values of a JSON type.
func typeSchema(kind string) map[string]any { return map[string]any{"type": kind} }

// listSchema returns the schema of a list whose items have these types.
func listSchema(kinds ...string) map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": kinds}}
}

// nonEmptyListSchema returns the schema of a list of at least one item of these types.
func nonEmptyListSchema(kinds ...string) map[string]any {
	schema := listSchema(kinds...)
	schema["minItems"] = 1
	return schema
}

// mapSchema returns the schema of a map whose values have these types.
func mapSchema(kinds ...string) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": kinds}}
}

// enumSchema returns the schema of a text that is one of words.
func enumSchema(words ...string) map[string]any {
	return map[string]any{"type": "string", "enum": words}
}

// durationSchema returns the schema of a duration such as 1m30s.
func durationSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
}

// fields returns all fields of a server, in the order of the schema.
func fields() []field {
	return slices.Concat(processFields(), remoteFields(), lifecycleFields(), toolFields())
}

// processFields returns the fields of a server that is a program.
func processFields() []field {
	return []field{
		{"command", []string{"cmd"}, "The program, or a list of the program and its arguments. A name without a slash is looked up in PATH; a path is relative to this file.",
			map[string]any{"oneOf": []any{typeSchema("string"), listSchema("string")}},
			func(r *reader, n *node) {
				if n.kind == listNode {
					r.server.Command = append(r.texts(n), r.server.Command...)
				} else if n.kind == mapNode && r.zed && n.get("command") == nil {
					r.readZedCommand(n)
				} else if text := r.text(n); text != "" {
					r.server.Command = append([]string{text}, r.server.Command...)
				}
			}},
		{"args", []string{"arguments"}, "Arguments of the program.", listSchema("string", "number", "boolean"),
			func(r *reader, n *node) { r.server.Command = append(r.server.Command, r.texts(n)...) }},
		{"env", []string{"environment"}, "Environment variables for the server, in addition to the host's. null removes one.", mapSchema("string", "number", "boolean", "null"),
			func(r *reader, n *node) {
				set, unset := r.vars(n, "=")
				mergeInto(&r.server.Env, set)
				r.server.Unset = append(r.server.Unset, unset...)
			}},
		{"env_file", nil, "A file of NAME=value lines with more environment variables; env wins.", typeSchema("string"),
			func(r *reader, n *node) { r.server.EnvFile = r.text(n) }},
		{"sandbox", nil, "Confines the program of the server: default, off, or settings. A confined server reads the system, its program and its working directory. It writes to a private home directory and a temporary directory. It reaches only what network allows (default off).", sandboxSchema(), readSandbox},
		{"sandbox_enabled", []string{"sandboxed"}, "", nil, readSandboxEnabled},
		{"cwd", []string{"dir", "workingDirectory", "workingDir", "workdir"}, "Working directory of the server, relative to this file.", typeSchema("string"),
			func(r *reader, n *node) { r.server.Dir = r.text(n) }},
	}
}

// remoteFields returns the fields of a server over HTTP.
func remoteFields() []field {
	return []field{
		{"url", []string{"httpUrl", "serverUrl", "endpoint", "uri", "baseUrl"}, "Address of a server over HTTP.", typeSchema("string"),
			func(r *reader, n *node) {
				r.server.URL = r.text(n)
				if normalizeName(r.field) == "httpurl" && r.server.Transport == "" {
					r.server.Transport = StreamableHTTP
				}
			}},
		{"headers", []string{"httpHeaders", "requestHeaders"}, "HTTP headers of every request.", mapSchema("string"),
			func(r *reader, n *node) {
				set, _ := r.vars(n, ":")
				mergeInto(&r.server.Headers, set)
			}},
		{"env_headers", []string{"envHttpHeaders", "headersFromEnv"}, "HTTP headers with values from the environment: header → variable name.", mapSchema("string"),
			func(r *reader, n *node) {
				set := map[string]secret.Text{}
				for name, variable := range r.textMap(n) {
					set[name] = secret.Text("${" + variable + "}")
				}
				mergeInto(&r.server.Headers, set)
			}},
		{"api_key", []string{"bearerToken", "authorizationToken", "token"}, "Sent as Authorization: Bearer. Write ${NAME} to take it from the environment.", typeSchema("string"),
			func(r *reader, n *node) { r.server.APIKey = secret.Text(r.text(n)) }},
		{"auth_token_env", []string{"bearerTokenEnvVar", "apiKeyEnv"}, "The name of the environment variable that holds the bearer token.", typeSchema("string"),
			func(r *reader, n *node) { r.server.AuthTokenEnv = r.text(n) }},
		{"oauth", nil, "Settings for the sign-in by mcp-host login NAME, such as client, scopes and account. By default (true), the host registers itself as a client if the server asks for a sign-in. false: never sign in.", oauthSchema(), readOAuth},
		{"credentials", nil, "Credentials of requests: those of the host (host), or, with auth, those of the calling user (caller), who signs in to the server by a link (default host).", enumSchema("host", CallerCredentials),
			func(r *reader, n *node) {
				if r.server.Credentials = r.choice(n, "host", CallerCredentials); r.server.Credentials == "host" {
					r.server.Credentials = ""
				}
			}},
		{"token_exchange", nil, "With auth: the host exchanges the token of the calling user at auth.issuer for a token for this server (RFC 8693). true, false, or settings (default false).", tokenExchangeSchema(), readTokenExchange},
		{"auth", nil, "", nil, readAuth},
		{"auth_provider_type", nil, "", nil, readAuthProvider},
		{"scopes", []string{"oauthScopes"}, "", nil,
			func(r *reader, n *node) { r.server.OAuth.Scopes = append(r.server.OAuth.Scopes, r.scopes(n)...) }},
		{"headers_helper", nil, "Program that prints more headers as a JSON object: a list of the program and its arguments, or a command line for the shell. It runs for each connection, and again if the server answers 401 or 403.",
			map[string]any{"type": []string{"array", "string"}, "items": typeSchema("string")}, readHeadersHelper},
		{"allow_private", nil, "Accept a public host name that resolves to a private address, for example inside a company network (default false).", typeSchema("boolean"),
			func(r *reader, n *node) { r.server.AllowPrivate, _ = r.boolean(n) }},
		{"transport", []string{"type", "serverType", "transportType"}, "Transport; default: inferred from command or url.", enumSchema(Stdio, StreamableHTTP, SSE),
			readTransport},
	}
}

// lifecycleFields returns the fields for the times, the start and the scope of a server.
func lifecycleFields() []field {
	return []field{
		{"timeout", []string{"toolTimeout", "callTimeout"}, "Maximum duration of a call; default: timeout in the settings.", durationSchema(),
			func(r *reader, n *node) {
				unit := time.Duration(0)
				if r.zed {
					unit = time.Second
				}
				r.server.Timeout = r.duration(n, unit)
			}},
		{"timeout_ms", nil, "", nil, func(r *reader, n *node) { r.server.Timeout = r.duration(n, time.Millisecond) }},
		{"timeout_seconds", []string{"timeoutSec", "timeoutSecs", "toolTimeoutSec", "toolTimeoutSeconds"}, "", nil,
			func(r *reader, n *node) { r.server.Timeout = r.duration(n, time.Second) }},
		{"start_timeout", []string{"startupTimeout", "initTimeout", "connectionTimeout"}, "Maximum time to start and list its tools (default 10s; 60s for npx, uvx, docker).", durationSchema(),
			func(r *reader, n *node) { r.server.StartTimeout = r.duration(n, 0) }},
		{"start_timeout_seconds", []string{"startupTimeoutSec", "startupTimeoutSeconds"}, "", nil,
			func(r *reader, n *node) { r.server.StartTimeout = r.duration(n, time.Second) }},
		{"start_timeout_ms", []string{"startupTimeoutMs"}, "", nil,
			func(r *reader, n *node) { r.server.StartTimeout = r.duration(n, time.Millisecond) }},
		{"max_concurrent", []string{"maxConcurrentTools", "maxConcurrency", "concurrency"}, "Maximum concurrent calls (default 5).",
			map[string]any{"type": "integer", "minimum": 1},
			func(r *reader, n *node) { r.server.MaxConcurrent = r.count(n) }},
		{"scope", nil, "One process for all (shared), for each client (session), or for each call (default shared). If you write shared explicitly, other hosts of the user can use the process, too, unless share or share_servers says otherwise.", enumSchema("shared", "session", "call"),
			func(r *reader, n *node) { r.server.Scope = r.choice(n, "shared", "session", "call") }},
		{"lazy", nil, "Start the server only when it is first needed (default true).", typeSchema("boolean"),
			func(r *reader, n *node) {
				if value, ok := r.boolean(n); ok {
					r.server.Lazy = &value
				}
			}},
		{"share", nil, "Whether other hosts can use the server's process; without effect if share_servers is false (default: as share_servers says).", typeSchema("boolean"),
			func(r *reader, n *node) {
				if value, ok := r.boolean(n); ok {
					r.server.Share = &value
				}
			}},
		{"enabled", []string{"isActive", "active"}, "false disables the server (default true).", typeSchema("boolean"),
			func(r *reader, n *node) {
				if value, ok := r.boolean(n); ok && !value {
					r.server.Disabled = true
				}
			}},
		{"disabled", nil, "", nil,
			func(r *reader, n *node) {
				if value, ok := r.boolean(n); ok && value {
					r.server.Disabled = true
				}
			}},
		{"era", nil, "Protocol era of the server: modern (2026-07-28 and later), legacy (before), or auto to try both (default auto).", enumSchema("auto", "legacy", "modern"),
			func(r *reader, n *node) { r.server.Era = r.choice(n, "auto", "legacy", "modern") }},
	}
}

// toolFields returns the fields for filtering and renaming a server's tools.
func toolFields() []field {
	allow := func(r *reader, n *node) { r.readAllowed(n) }
	block := func(r *reader, n *node) { r.server.Tools.Block = append(r.server.Tools.Block, r.texts(n)...) }
	return []field{
		{"tools", []string{"toolFilter", "toolConfiguration"}, "Filters and renames the server's tools.", map[string]any{
			"type": "object", "additionalProperties": false,
			"properties": map[string]any{
				"allow":    withDescription(nonEmptyListSchema("string"), "Patterns; only tools whose own or served name matches are served."),
				"block":    withDescription(listSchema("string"), "Patterns; tools whose own or served name matches are not served."),
				"rename":   withDescription(mapSchema("string"), "Tool → served name."),
				"describe": withDescription(mapSchema("string"), "Tool → served description."),
			}}, readTools},
		{"allow_tools", []string{"allowedTools", "includeTools", "enabledTools", "includedTools"}, "", nil, allow},
		{"block_tools", []string{"excludeTools", "excludedTools", "disabledTools", "blockedTools", "blocklist"}, "", nil, block},
		{"prefix", nil, "Prefix of the server's tool names instead of NAME__; can be empty.", typeSchema("string"),
			func(r *reader, n *node) {
				text := r.text(n)
				r.server.Prefix = &text
			}},
		{"description", []string{"displayName", "title"}, "A comment; the host does not use it.", typeSchema("string"), nil},
	}
}

// withDescription sets the description of a schema and returns it.
func withDescription(schema map[string]any, doc string) map[string]any {
	schema["description"] = doc
	return schema
}

// ineffectiveFields returns fields of other products that have no effect here: the server's answer
// tells whether it needs a sign-in, the policy decides on approval, and other fields are for
// editors. Values that restrict a server in the other product lead to a warning; see
// restrictionReason.
func ineffectiveFields() []string {
	return []string{
		"id", "name", "trust", "targetAudience", "targetServiceAccount", "extensionName",
		"alwaysAllow", "autoApprove", "autoStart", "autoRestart", "restart", "icon", "iconUrl", "gallery", "version", "dev", "note", "notes",
		"required", "oauthResource", "supportsParallelToolCalls", "defaultToolsApprovalMode",
		"alwaysLoad", "instructions", "tags", "priority", "category", "capabilities", "envVars", "requiresOAuth", "serverInstructions", "$schema", "_comment", "comment",
		"provider", "providerUrl", "homepage", "repository", "license", "author", "experimental_environment", "environmentId", "fromGalleryId",
	}
}

// mergeInto copies the members of from into a map, which it creates if necessary.
func mergeInto(into *map[string]secret.Text, from map[string]secret.Text) {
	if *into == nil && len(from) > 0 {
		*into = map[string]secret.Text{}
	}
	maps.Copy(*into, from)
}

// readHeadersHelper reads a list, or, as Claude Code has it, a command line for the
// system's shell.
func readHeadersHelper(r *reader, n *node) {
	if n.kind == listNode {
		r.server.HeadersHelper = r.texts(n)
		return
	}
	if line := r.text(n); line != "" {
		r.server.HeadersHelper = []string{"sh", "-c", line}
		if runtime.GOOS == "windows" {
			r.server.HeadersHelper = []string{"cmd", "/c", line}
		}
	}
}

// readTransport reads a transport by any of its names, or a map {type, url, headers}. Another name
// is a problem that says what to use.
func readTransport(r *reader, n *node) {
	if n.kind == mapNode { // {transport: {type, url, headers}}
		r.readFields(n)
		return
	}
	word := r.text(n)
	switch normalizeName(word) {
	case "":
	case "stdio", "local", "command", "process":
		r.server.Transport = Stdio
	case "streamablehttp", "http", "https", "streamable", "remote", "url", "httpstream", "streaminghttp":
		// remote and url leave open which of the two it is.
		if p := normalizeName(word); p != "remote" && p != "url" {
			r.server.Transport = StreamableHTTP
		}
	case "sse", "serversentevents", "httpsse", "http+sse":
		r.server.Transport = SSE
	case "ws", "wss", "websocket":
		r.problem("WebSocket is not a transport of MCP; use streamable-http and the server's http(s) address")
	case "builtin", "inprocess", "sdk":
		r.warn("a server built into the other program; ignored (the bundled tools replace most of these)")
		r.server.Disabled = true
	default:
		r.problem("not a transport; use %s, %s or %s%s", Stdio, StreamableHTTP, SSE, didYouMean(word, []string{Stdio, StreamableHTTP, SSE}))
	}
}

// readAllowed reads a list of the only tools to serve. As in most other products, an empty
// list blocks all tools. In toolroom's own file it is a problem.
func (r *reader) readAllowed(n *node) {
	list := r.texts(n)
	r.server.Tools.Allow = append(r.server.Tools.Allow, list...)
	switch {
	case n.kind != listNode || len(n.items) > 0:
	case r.strict:
		r.problem("an empty list; leave it out to serve all tools, or block ['*']")
	default:
		r.warn("an empty list, so no tool is served")
		r.server.Tools.Block = append(r.server.Tools.Block, "*")
	}
}

// readTools reads a server's field tools: {allow, block, rename, describe}, or a list of the
// allowed. It also reads other products' names for these and enabled, and warns of settings of
// single tools.
func readTools(r *reader, n *node) {
	f := &r.server.Tools
	if n.kind == listNode {
		r.readAllowed(n)
		return
	}
	if n.kind != mapNode {
		if n.kind != nullNode {
			r.problem("want a map of allow, block, rename, describe, not %s", n.kindWord())
		}
		return
	}
	name := r.field
	for _, p := range n.pairs {
		r.field, r.line = name+"."+shownName(p.key), p.line
		switch normalizeName(p.key) {
		case "allow", "allowlist", "include", "allowed", "allowedtools":
			r.readAllowed(p.value)
		case "block", "blocklist", "deny", "denylist", "exclude", "blocked":
			f.Block = append(f.Block, r.texts(p.value)...)
		case "enabled":
			if value, ok := r.boolean(p.value); ok && !value {
				r.server.Disabled = true
			}
		case "rename":
			f.Rename = r.textMap(p.value)
		case "describe":
			f.Describe = r.textMap(p.value)
		default:
			known := []string{"allow", "block", "rename", "describe"}
			if !r.strict && p.value.kind == mapNode && nearestName(p.key, known) == "" {
				for _, of := range p.value.pairs { // settings of one tool, as Codex has them
					r.field, r.line = name+"."+shownName(p.key)+"."+shownName(of.key), of.line
					r.warnRestricted(of)
				}
				continue
			}
			r.problem("unknown; use allow, block, rename and describe%s", didYouMean(p.key, known))
		}
	}
}
