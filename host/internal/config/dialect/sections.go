package dialect

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
)

// settings returns all settings in the order of their application.
func settings() []setting {
	return []setting{
		{"models", nil, "Models and their providers; see docs/models.md.", objectSchema(modelsFields(&lookup.Config{})),
			func(r *reader, n *node, s *Settings) { r.readMembers(n, modelsFields(&s.Models)) }},
		{"profiles", nil, "Subsets of the tools, by name, each served over HTTP at /mcp/NAME.",
			map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": "^[a-zA-Z0-9_-]{1,64}$"}, "additionalProperties": objectSchema(profileFields(&catalog.Profile{}))},
			readProfiles},
		{"auth", nil, "Sign-in of users to serve, by OAuth; default: one token for all clients.", objectSchema(authFields(&accesstoken.Config{}), "issuer", "url"), readSignIn},
		{"agents", nil, "Kinds of agents, by name, in addition to explore and general, or replacing them.", agentsSchema(), readAgents},
		{"tool_pins", nil, "What happens to a tool whose definition changed since first use: nothing (off), a report (warn), or no use until approved (enforce); default warn.",
			map[string]any{"enum": []any{"off", "warn", "enforce", false}}, readPins},
		{"share_servers", nil, "Whether the hosts of this user share the processes of servers with the same command, environment and working directory; default: only those of servers known to keep no state for a client.", typeSchema("boolean"),
			readShareServers},
		{"tools", []string{"declared_tools"}, "Declared tools, which need no server, by name; see docs/declared-tools.md.", toolsSchema(), readDeclared},
		{"manifests", []string{"tool_manifests"}, "Tool manifest files, and directories of such files, relative to this file.", listSchema("string"),
			func(r *reader, n *node, s *Settings) { s.Manifests = r.texts(n) }},
		{"store", []string{"state_store"}, "Database of the host (approvals, registered tools, conversations, agent runs, artifacts): sqlite (in the state directory), a directory, memory, or nats://HOST:4222.",
			typeOrObjectSchema("string", storeFields(&Store{})), readStore},
		{"token_store", nil, "Where the tokens of sign-ins are stored: encrypted in files, with a key in the system's keyring (keyring); in files that only the user can read (file); like keyring if possible, else like file (auto, the default); or in the store of a cluster (cluster).", map[string]any{"enum": []any{"auto", "keyring", "file", "cluster"}}, readTokenStore},
		{"audit", []string{"audit_log"}, "The audit log of calls; off: none.", offOrObjectSchema(auditFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				if s.Stages.Audit.Off = isOff(n); !s.Stages.Audit.Off {
					r.readMembers(n, auditFields(&s.Stages))
				}
			}},
		{"validate", []string{"validation"}, "Validation of arguments and results against the tools' schemas; off: none.", offOrObjectSchema(validateFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				v := &s.Stages.Schemas
				if v.ArgumentsOff, v.ResultsOff = isOff(n), isOff(n); !isOff(n) {
					r.readMembers(n, validateFields(&s.Stages))
				}
			}},
		{"policy", []string{"tool_policy"}, "Which calls are allowed, and limits for them.", objectSchema(policyFields(&Settings{})),
			func(r *reader, n *node, s *Settings) { r.readMembers(n, policyFields(s)) }},
		{"approval", []string{"approvals"}, "Approval of calls if a rule says ask.", objectSchema(approvalFields(&Stages{})),
			func(r *reader, n *node, s *Settings) { r.readMembers(n, approvalFields(&s.Stages)) }},
		{"max_tools", nil, "", nil, func(r *reader, n *node, s *Settings) { s.Offer.MaxTools = r.count(n) }},
		{"context", nil, "Limits of the tool list in a model's context; tools beyond them are reached with search_tools and call_tool.", objectSchema(contextFields(&toolsearch.Config{})),
			func(r *reader, n *node, s *Settings) { r.readMembers(n, contextFields(&s.Offer)) }},
		{"cache", nil, "Cache of results; off unless tools are listed.", offOrObjectSchema(cacheFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				if !isOff(n) {
					r.readMembers(n, cacheFields(&s.Stages))
				}
			}},
		{"max_concurrent_tools", nil, "", nil, func(r *reader, n *node, s *Settings) { s.Stages.Limit.Concurrent = r.count(n) }},
		{"limits", []string{"limit"}, "Limits of running and waiting calls.", objectSchema(limitFields(&Stages{})),
			func(r *reader, n *node, s *Settings) { r.readMembers(n, limitFields(&s.Stages)) }},
		{"default_timeout_seconds", nil, "", nil, func(r *reader, n *node, s *Settings) { s.Stages.Timeout.Default = r.duration(n, time.Second) }},
		{"timeout", []string{"timeouts", "default_timeout"}, "Maximum duration of a call (default 30s), or a map with details; off: no limit.", map[string]any{"oneOf": []any{offSchema(), durationSchema(), objectSchema(timeoutFields(&Stages{}))}},
			func(r *reader, n *node, s *Settings) {
				if n.kind != mapNode {
					s.Stages.Timeout.Default = r.durationOrOff(n)
					return
				}
				r.readMembers(n, timeoutFields(&s.Stages))
			}},
		{"retry", []string{"retries"}, "Retries of calls that fail without an answer; off: none.", offOrObjectSchema(retryFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				if isOff(n) {
					s.Stages.Retry.Attempts = 1
					return
				}
				r.readMembers(n, retryFields(&s.Stages))
			}},
		{"breaker", []string{"circuit_breaker"}, "Circuit breaker for failing servers; off: none.", offOrObjectSchema(breakerFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				if s.Stages.Breaker.Off = isOff(n); !s.Stages.Breaker.Off {
					r.readMembers(n, breakerFields(&s.Stages))
				}
			}},
		{"max_result", nil, "Size of a result above which its large parts are stored in files (default 1MiB); off: no limit.", sizeSchema(true),
			func(r *reader, n *node, s *Settings) {
				if s.Stages.Spill.MaxResult = -1; !isOff(n) {
					s.Stages.Spill.MaxResult = int(min(r.size(n), math.MaxInt32))
				}
			}},
	}
}

// profileFields returns the fields of a profile.
func profileFields(p *catalog.Profile) []field {
	return []field{
		textsField("servers", nil, "Patterns of server names; only the tools of matching servers are served.", &p.Servers),
		nonEmptyTextsField("allow", []string{"allow_tools", "tools", "allowlist"}, "Patterns of served names; only matching tools are served.", ", or block \"*\"", &p.Allow),
		textsField("block", []string{"block_tools", "blocklist", "deny"}, "Patterns of served names; matching tools are not served.", &p.Block),
	}
}

// readProfiles reads the setting profiles: parts of the catalog by name.
func readProfiles(r *reader, n *node, s *Settings) {
	if n.kind != mapNode {
		r.problem("want a map of profiles by name, not %s", n.kindWord())
		return
	}
	path := r.field
	for _, one := range n.pairs {
		p := catalog.Profile{Name: one.key}
		r.field, r.line = path+"."+shownName(one.key), one.line
		if p.Validate() != nil {
			r.problem("a name has 1 to 64 of a-z, A-Z, 0-9, _ and -")
			continue
		}
		r.readMembers(one.value, profileFields(&p))
		s.Profiles = append(s.Profiles, p)
	}
}

// storeFields returns the fields of the setting store.
func storeFields(s *Store) []field {
	return []field{
		{"url", nil, "nats://HOST:4222, several of them separated by commas, or memory.", typeSchema("string"), func(r *reader, n *node) { *s = parseStore(r.text(n), *s) }},
		{"dir", []string{"path"}, "Directory of the database, relative to this file; default: the state directory.", typeSchema("string"), func(r *reader, n *node) { s.Dir = r.text(n) }},
		{"token", nil, "Token for the NATS servers. Write ${NAME} to take it from the environment.", typeSchema("string"), func(r *reader, n *node) { s.Token = secret.Text(r.text(n)) }},
		sizeField("max_bytes", "Maximum size of the database; for NATS, of the keys and of the logs, each (default 512MiB).", &s.MaxBytes),
	}
}

// parseStore returns s with the place of the store that text names: a URL, memory, sqlite or
// a directory.
func parseStore(text string, s Store) Store {
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case text == "sqlite" || text == "":
	case kind == "memory":
		s.URL = "memory:"
	case kind == "sqlite":
		s.Dir = strings.TrimPrefix(rest, "//")
	case strings.Contains(text, "://") || strings.HasPrefix(text, "$"):
		s.URL = text
	default:
		s.Dir = text
	}
	return s
}

// readStore reads the setting store: a URL, a directory, or a map.
func readStore(r *reader, n *node, s *Settings) {
	at := Store{File: r.doc.File, Line: r.line}
	if n.kind == mapNode {
		r.readMembers(n, storeFields(&at))
	} else {
		at = parseStore(r.text(n), at)
	}
	s.Store = at
}

// auditFields returns the fields of the setting audit.
func auditFields(s *Stages) []field {
	return []field{
		boolField("enabled", nil, "false for no log (default true).", func(on bool) { s.Audit.Off = !on }),
		boolField("required", nil, "Whether a call is refused if it cannot be logged (default false).", func(on bool) { s.Audit.Required = on }),
		{"dir", []string{"path"}, "Absolute directory of the log files; default: audit in the state directory.", typeSchema("string"), func(r *reader, n *node) {
			if s.Audit.Dir = r.text(n); !strings.HasPrefix(s.Audit.Dir, "/") && !strings.Contains(s.Audit.Dir, `:\`) {
				r.problem("want an absolute path")
			}
		}},
		{"max_args", nil, "Maximum logged size of a call's arguments (default 4KiB).", sizeSchema(false), func(r *reader, n *node) { s.Audit.MaxArgs = int(min(r.size(n), math.MaxInt32)) }},
		sizeField("file_size", "Size at which a new file is started (default 64MiB).", &s.Audit.FileSize),
		sizeField("keep", "Maximum size of all files together (default 512MiB).", &s.Audit.Keep),
		durationField("age", "Maximum age of a file (default 720h).", &s.Audit.Age),
	}
}

// validateFields returns the fields of the setting validate.
func validateFields(s *Stages) []field {
	return []field{
		boolField("arguments", nil, "Whether arguments are checked (default true).", func(on bool) { s.Schemas.ArgumentsOff = !on }),
		boolField("results", nil, "Whether structured results are checked (default true).", func(on bool) { s.Schemas.ResultsOff = !on }),
	}
}

// contextFields returns the fields of the setting context.
func contextFields(o *toolsearch.Config) []field {
	return []field{
		numberField("max_tools", nil, "Maximum number of tools listed to an MCP client, including search_tools, describe_tool and call_tool; pinned tools are listed even if they exceed it; default: no limit.", &o.MaxTools),
		numberField("tools_percent", nil, "Maximum share of the window for the listed definitions, in percent; default: no limit.", &o.ToolsPercent),
		numberField("window", []string{"context_window"}, "Context window of the clients' models in tokens (default 200000).", &o.Window),
		textsField("pinned", []string{"pin"}, "Patterns of served names; matching tools are always listed.", &o.Pinned),
		textsField("priority", nil, "Patterns of served names; matching tools are listed before others, in this order, as space permits.", &o.Priority),
	}
}

// cacheFields returns the fields of the setting cache.
func cacheFields(s *Stages) []field {
	return []field{
		textsField("tools", nil, "Served names of read-only tools; a * at the end matches all names with that prefix.", &s.Cache.Tools),
		durationField("ttl", "How long a result is reused (default 5m).", &s.Cache.TTL),
		sizeField("max_bytes", "Maximum size of all cached results (default 64MiB).", &s.Cache.MaxBytes),
		{"max_entry", nil, "Maximum size of a cached result (default 1MiB).", sizeSchema(false), func(r *reader, n *node) { s.Cache.MaxEntry = int(min(r.size(n), math.MaxInt32)) }},
	}
}

// limitFields returns the fields of the setting limits.
func limitFields(s *Stages) []field {
	l := &s.Limit
	count := func(name string, also []string, doc string, into *int) field {
		return numberField(name, also, doc, into)
	}
	return []field{
		count("concurrent", []string{"max_concurrent", "max_concurrent_tools"}, "Maximum concurrent calls per server (default 5); max_concurrent of a server overrides it.", &l.Concurrent),
		count("max_parallel", nil, "Maximum concurrent calls of one account (docs/policy.md), on all servers; further calls wait. The same setting as policy.max_parallel; default: 10 within a turn, otherwise no limit.", &l.MaxParallel),
		count("queue", nil, "Maximum waiting calls per client and server (default 1000).", &l.Queue),
		sizeField("queue_bytes", "Maximum total size of the parameters of all calls waiting for one server (default 64MiB).", &l.QueueBytes),
		durationField("max_wait", "Maximum time that a call waits for others to end, before it fails (default 1m).", &l.MaxWait),
		count("max_depth", nil, "Maximum nesting of calls (default 1: an agent that was started by an agent cannot start another).", &l.MaxDepth),
	}
}

// timeoutFields returns the fields of the setting timeout.
func timeoutFields(s *Stages) []field {
	t := &s.Timeout
	return []field{
		{"default", []string{"default_timeout"}, "Maximum duration of a call (default 30s); off: no limit. A server's timeout overrides it.", durationOrOffSchema(), func(r *reader, n *node) { t.Default = r.durationOrOff(n) }},
		{"default_timeout_seconds", nil, "", nil, func(r *reader, n *node) { t.Default = r.duration(n, time.Second) }},
		{"tools", nil, "Maximum durations by served name.", map[string]any{"type": "object", "additionalProperties": durationOrOffSchema()}, func(r *reader, n *node) {
			t.Tools = map[string]time.Duration{}
			r.eachMember(n, func(name string, value *node) { t.Tools[name] = r.durationOrOff(value) })
		}},
		durationField("grace", "Additional time for tools that enforce their own timeout (default 5s).", &t.Grace),
	}
}

// retryFields returns the fields of the setting retry.
func retryFields(s *Stages) []field {
	return []field{
		numberField("attempts", []string{"max_attempts"}, "Maximum attempts per call (default 3).", &s.Retry.Attempts),
		durationField("base", "First backoff (default 100ms).", &s.Retry.Base),
		durationField("max_wait", "Maximum backoff (default 5s).", &s.Retry.MaxWait),
		durationField("per_attempt", "Maximum duration of one attempt; default: that of the call.", &s.Retry.PerAttempt),
	}
}

// breakerFields returns the fields of the setting breaker.
func breakerFields(s *Stages) []field {
	return []field{
		numberField("failures", nil, "Failures in a row that open the breaker (default 5).", &s.Breaker.Failures),
		durationField("within", "Time within which the failures must occur to open the breaker (default 30s).", &s.Breaker.Within),
		durationField("open", "How long calls are refused after the breaker opened (default 5s).", &s.Breaker.Open),
	}
}

// eachMember calls f with the members of a map whose names are the user's.
func (r *reader) eachMember(n *node, f func(name string, value *node)) {
	if n.kind != mapNode {
		r.problem("want a map, not %s", n.kindWord())
		return
	}
	path := r.field
	for _, p := range n.pairs {
		r.field, r.line = path+"."+shownName(p.key), p.line
		f(p.key, p.value)
	}
	r.field = path
}

// readMembers reads the members of a map with the fields of their names; null has none. Unknown and
// repeated members are problems.
func (r *reader) readMembers(n *node, all []field) {
	if n.kind == nullNode {
		return
	}
	if n.kind != mapNode {
		r.problem("want a map, not %s", n.kindWord())
		return
	}
	path, line := r.field, r.line
	seen := map[string]string{}
	for _, p := range n.pairs {
		r.field, r.line = path+"."+shownName(p.key), p.line
		i := slices.IndexFunc(all, func(f field) bool { return f.isNamed(p.key) })
		if i < 0 {
			var names []string
			for _, f := range all {
				names = append(names, f.name)
			}
			r.problem("unknown%s", cmp.Or(didYouMean(p.key, names), "; known are "+strings.Join(names, ", ")))
			continue
		}
		if before, twice := seen[all[i].name]; twice {
			r.problem("has the same meaning as %s; leave one out", before)
			continue
		}
		seen[all[i].name] = shownName(p.key)
		all[i].read(r, p.value)
	}
	r.field, r.line = path, line
}

// readShareServers reads share_servers.
func readShareServers(r *reader, n *node, s *Settings) {
	if value, ok := r.boolean(n); ok {
		s.ShareServers = &value
	}
}

// readPins reads the setting tool_pins.
func readPins(r *reader, n *node, s *Settings) {
	s.Pins = catalog.PinMode(r.choice(r.normalizeOff(n), "off", "warn", "enforce"))
}

// readTokenStore reads the setting token_store.
func readTokenStore(r *reader, n *node, s *Settings) {
	s.TokenStore = r.choice(n, "auto", "keyring", "file", "cluster")
}
