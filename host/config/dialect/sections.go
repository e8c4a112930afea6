package dialect

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/catalog"
	"github.com/toolroom-mcp/toolroom/host/config/secret"
	"github.com/toolroom-mcp/toolroom/host/offer"
	"github.com/toolroom-mcp/toolroom/host/provider/registry"
)

// settings is every setting, in the order in which they are applied.
func settings() []setting {
	return []setting{
		{"models", nil, "Which models answer, and where they are; see docs/models.md.", objectOf(modelsFields(&registry.Config{})),
			func(r *reader, n *node, s *Settings) { r.members(n, modelsFields(&s.Models)) }},
		{"profiles", nil, "Parts of the catalogue, by name, each served at /mcp/NAME.",
			map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": "^[a-zA-Z0-9_-]{1,64}$"}, "additionalProperties": objectOf(profileFields(&catalog.Profile{}))},
			readProfiles},
		{"agents", nil, "Kinds of agents, by name, beside explore and general, or in their place.", agentsSchema(), readAgents},
		{"tool_pins", nil, "What becomes of a tool whose definition is another than at first use: nothing (off), it is reported (warn), or withheld until approved (enforce); default warn.",
			map[string]any{"enum": []any{"off", "warn", "enforce", false}},
			func(r *reader, n *node, s *Settings) {
				s.Pins = catalog.PinMode(r.choice(r.offWord(n), "off", "warn", "enforce"))
			}},
		{"tools", []string{"declared_tools"}, "Tools that are declared here and need no server, by name; see docs/declared-tools.md.", toolsSchema(), readDeclared},
		{"manifests", []string{"tool_manifests"}, "Files of tool manifests, and directories of such, relative to this file.", listOf("string"),
			func(r *reader, n *node, s *Settings) { s.Manifests = r.texts(n) }},
		{"store", []string{"state_store"}, "Where state is kept: sqlite (in the state directory), a directory, memory, or nats://HOST:4222.",
			orSection("string", storeFields(&Store{})), readStore},
		{"audit", []string{"audit_log"}, "The log of calls; off for none.", orOff(auditFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				if s.Stages.Audit.Off = isOff(n); !s.Stages.Audit.Off {
					r.members(n, auditFields(&s.Stages))
				}
			}},
		{"validate", []string{"validation"}, "Whether arguments and results are checked against the tools' schemas; off for neither.", orOff(validateFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				v := &s.Stages.Schemas
				if v.ArgumentsOff, v.ResultsOff = isOff(n), isOff(n); !isOff(n) {
					r.members(n, validateFields(&s.Stages))
				}
			}},
		{"policy", []string{"tool_policy"}, "Who may call what, and how often.", objectOf(policyFields(&Settings{})),
			func(r *reader, n *node, s *Settings) { r.members(n, policyFields(s)) }},
		{"approval", []string{"approvals"}, "How calls are approved that a rule asks about.", objectOf(approvalFields(&Stages{})),
			func(r *reader, n *node, s *Settings) { r.members(n, approvalFields(&s.Stages)) }},
		{"max_tools", nil, "", nil, func(r *reader, n *node, s *Settings) { s.Offer.MaxTools = r.count(n) }},
		{"context", nil, "How much of a model's context the list of tools may take; beyond it, search_tools and call_tool stand in for the rest.", objectOf(contextFields(&offer.Config{})),
			func(r *reader, n *node, s *Settings) { r.members(n, contextFields(&s.Offer)) }},
		{"cache", nil, "Results that are kept and given again; off unless tools are named.", orOff(cacheFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				if !isOff(n) {
					r.members(n, cacheFields(&s.Stages))
				}
			}},
		{"max_concurrent_tools", nil, "", nil, func(r *reader, n *node, s *Settings) { s.Stages.Limit.Concurrent = r.count(n) }},
		{"limits", []string{"limit"}, "How many calls run at once, and how many wait.", objectOf(limitFields(&Stages{})),
			func(r *reader, n *node, s *Settings) { r.members(n, limitFields(&s.Stages)) }},
		{"default_timeout_seconds", nil, "", nil, func(r *reader, n *node, s *Settings) { s.Stages.Timeout.Default = r.duration(n, time.Second) }},
		{"timeout", []string{"timeouts", "default_timeout"}, "The longest a call may take (default 30s), or more of it; off for no bound.", map[string]any{"oneOf": []any{offSchema(), durationSchema(), objectOf(timeoutFields(&Stages{}))}},
			func(r *reader, n *node, s *Settings) {
				if n.kind != mapNode {
					s.Stages.Timeout.Default = r.durationOrOff(n)
					return
				}
				r.members(n, timeoutFields(&s.Stages))
			}},
		{"retry", []string{"retries"}, "How calls that fail before they are answered are made again; off for never.", orOff(retryFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				if isOff(n) {
					s.Stages.Retry.Attempts = 1
					return
				}
				r.members(n, retryFields(&s.Stages))
			}},
		{"breaker", []string{"circuit_breaker"}, "When a server that fails is left alone for a while; off for never.", orOff(breakerFields(&Stages{})),
			func(r *reader, n *node, s *Settings) {
				if s.Stages.Breaker.Off = isOff(n); !s.Stages.Breaker.Off {
					r.members(n, breakerFields(&s.Stages))
				}
			}},
		{"max_result", nil, "How large a result may be before the rest of it goes into a file (default 1MiB); off for no bound.", sizeSchema(true),
			func(r *reader, n *node, s *Settings) {
				if s.Stages.Spill.MaxResult = -1; !isOff(n) {
					s.Stages.Spill.MaxResult = int(min(r.size(n), math.MaxInt32))
				}
			}},
	}
}

func profileFields(p *catalog.Profile) []field {
	return []field{
		texts("servers", nil, "Names of servers, with *; only what they have is served.", &p.Servers),
		some("allow", []string{"allow_tools", "tools", "allowlist"}, "Served names of tools, with *; only these are served.", ", or block \"*\"", &p.Allow),
		texts("block", []string{"block_tools", "blocklist", "deny"}, "Served names of tools, with *; these are not served.", &p.Block),
	}
}

func readProfiles(r *reader, n *node, s *Settings) {
	if n.kind != mapNode {
		r.problem("want a map of profiles by name, not %s", n.what())
		return
	}
	path := r.field
	for _, one := range n.pairs {
		p := catalog.Profile{Name: one.key}
		r.field, r.line = path+"."+show(one.key), one.line
		if p.Validate() != nil {
			r.problem("a name has 1 to 64 of a-z, A-Z, 0-9, _ and -")
			continue
		}
		r.members(one.value, profileFields(&p))
		s.Profiles = append(s.Profiles, p)
	}
}

func storeFields(s *Store) []field {
	return []field{
		{"url", nil, "nats://HOST:4222, several with commas, or memory.", typed("string"), func(r *reader, n *node) { *s = storeOf(r.text(n), *s) }},
		{"dir", []string{"path"}, "Directory of the database, relative to this file; the state directory if not given.", typed("string"), func(r *reader, n *node) { s.Dir = r.text(n) }},
		{"token", nil, "For the cluster. Write ${NAME} to take it from the environment.", typed("string"), func(r *reader, n *node) { s.Token = secret.Text(r.text(n)) }},
		size("max_bytes", "How large keys and logs may grow (default 512MiB).", &s.MaxBytes),
	}
}

// storeOf reads the one word that says where a store is.
func storeOf(text string, s Store) Store {
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

func readStore(r *reader, n *node, s *Settings) {
	at := Store{File: r.doc.File, Line: r.line}
	if n.kind == mapNode {
		r.members(n, storeFields(&at))
	} else {
		at = storeOf(r.text(n), at)
	}
	s.Store = at
}

func auditFields(s *Stages) []field {
	return []field{
		toggle("enabled", nil, "false for no log (default true).", func(on bool) { s.Audit.Off = !on }),
		toggle("required", nil, "Whether a call that cannot be written down is refused (default false).", func(on bool) { s.Audit.Required = on }),
		{"dir", []string{"path"}, "Directory of the files, absolute; audit in the state directory if not given.", typed("string"), func(r *reader, n *node) {
			if s.Audit.Dir = r.text(n); !strings.HasPrefix(s.Audit.Dir, "/") && !strings.Contains(s.Audit.Dir, `:\`) {
				r.problem("want an absolute path")
			}
		}},
		{"max_args", nil, "How much of a call's arguments is kept (default 4KiB).", sizeSchema(false), func(r *reader, n *node) { s.Audit.MaxArgs = int(min(r.size(n), math.MaxInt32)) }},
		size("file_size", "After how much a new file is begun (default 64MiB).", &s.Audit.FileSize),
		size("keep", "How large all files together may grow (default 512MiB).", &s.Audit.Keep),
		span("age", "How old the oldest file may become (default 720h).", &s.Audit.Age),
	}
}

func validateFields(s *Stages) []field {
	return []field{
		toggle("arguments", nil, "Whether arguments are checked (default true).", func(on bool) { s.Schemas.ArgumentsOff = !on }),
		toggle("results", nil, "Whether structured results are checked (default true).", func(on bool) { s.Schemas.ResultsOff = !on }),
	}
}

func contextFields(o *offer.Config) []field {
	return []field{
		number("max_tools", nil, "How many tools are listed to a client of the MCP doors; any number if not given.", &o.MaxTools),
		number("tools_percent", nil, "How much of the window the listed definitions may take, in percent; all they want if not given.", &o.ToolsPercent),
		number("window", []string{"context_window"}, "Tokens that the clients' models take (default 200000).", &o.Window),
		texts("pinned", []string{"pin"}, "Served names of tools, with *, that are always listed.", &o.Pinned),
		texts("priority", nil, "Served names of tools, with *, that are listed before others as long as there is room; the first goes first.", &o.Priority),
	}
}

func cacheFields(s *Stages) []field {
	return []field{
		texts("tools", nil, "Served names of read-only tools, or with a * at the end all that begin so.", &s.Cache.Tools),
		span("ttl", "How long a result is given again (default 5m).", &s.Cache.TTL),
		size("max_bytes", "How large all results together may grow (default 64MiB).", &s.Cache.MaxBytes),
		{"max_entry", nil, "How large a result may be to be kept (default 1MiB).", sizeSchema(false), func(r *reader, n *node) { s.Cache.MaxEntry = int(min(r.size(n), math.MaxInt32)) }},
	}
}

func limitFields(s *Stages) []field {
	l := &s.Limit
	count := func(name string, also []string, doc string, into *int) field { return number(name, also, doc, into) }
	return []field{
		count("concurrent", []string{"max_concurrent", "max_concurrent_tools"}, "Calls of one server at once (default 5); a server's max_concurrent wins.", &l.Concurrent),
		count("max_parallel", nil, "Calls of one caller at once, of all servers; any number if not given.", &l.MaxParallel),
		count("queue", nil, "Calls of one caller that wait for one server (default 1000).", &l.Queue),
		size("queue_bytes", "Parameters of all calls that wait for one server (default 64MiB).", &l.QueueBytes),
		span("max_wait", "How long a call waits (default 1m).", &l.MaxWait),
		count("max_depth", nil, "How deep calls within calls go (default 1: an agent's agents dispatch none).", &l.MaxDepth),
	}
}

func timeoutFields(s *Stages) []field {
	t := &s.Timeout
	return []field{
		{"default", []string{"default_timeout"}, "The longest a call may take (default 30s); off for no bound. A server's timeout wins.", durationOrOffSchema(), func(r *reader, n *node) { t.Default = r.durationOrOff(n) }},
		{"default_timeout_seconds", nil, "", nil, func(r *reader, n *node) { t.Default = r.duration(n, time.Second) }},
		{"tools", nil, "The same by served name.", map[string]any{"type": "object", "additionalProperties": durationOrOffSchema()}, func(r *reader, n *node) {
			t.Tools = map[string]time.Duration{}
			r.each(n, func(name string, value *node) { t.Tools[name] = r.durationOrOff(value) })
		}},
		span("grace", "How much longer tools that end their calls themselves get (default 5s).", &t.Grace),
	}
}

func retryFields(s *Stages) []field {
	return []field{
		number("attempts", []string{"max_attempts"}, "How often a call is made, in all (default 3).", &s.Retry.Attempts),
		span("base", "The first pause (default 100ms).", &s.Retry.Base),
		span("max_wait", "The longest pause (default 5s).", &s.Retry.MaxWait),
		span("per_attempt", "How long one attempt may take; no longer than the call if not given.", &s.Retry.PerAttempt),
	}
}

func breakerFields(s *Stages) []field {
	return []field{
		number("failures", nil, "Failures in a row (default 5).", &s.Breaker.Failures),
		span("within", "From the first of them to the last (default 30s).", &s.Breaker.Within),
		span("open", "How long calls are refused (default 5s).", &s.Breaker.Open),
	}
}

// each calls f with the members of a map whose names are the user's.
func (r *reader) each(n *node, f func(name string, value *node)) {
	if n.kind != mapNode {
		r.problem("want a map, not %s", n.what())
		return
	}
	path := r.field
	for _, p := range n.pairs {
		r.field, r.line = path+"."+show(p.key), p.line
		f(p.key, p.value)
	}
	r.field = path
}

// members reads the members of a map by their names.
func (r *reader) members(n *node, all []field) {
	if n.kind == nullNode {
		return
	}
	if n.kind != mapNode {
		r.problem("want a map, not %s", n.what())
		return
	}
	path, line := r.field, r.line
	seen := map[string]string{}
	for _, p := range n.pairs {
		r.field, r.line = path+"."+show(p.key), p.line
		i := slices.IndexFunc(all, func(f field) bool {
			return plain(f.name) == plain(p.key) || slices.ContainsFunc(f.also, func(also string) bool { return plain(also) == plain(p.key) })
		})
		if i < 0 {
			var names []string
			for _, f := range all {
				names = append(names, f.name)
			}
			r.problem("not known%s", cmp.Or(didYouMean(p.key, names), "; known are "+strings.Join(names, ", ")))
			continue
		}
		if before, twice := seen[all[i].name]; twice {
			r.problem("says the same as %s; leave one of them out", before)
			continue
		}
		seen[all[i].name] = show(p.key)
		all[i].read(r, p.value)
	}
	r.field, r.line = path, line
}
