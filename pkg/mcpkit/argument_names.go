package mcpkit

import (
	"slices"
	"strings"
	"unicode"
)

// aliasGroups lists argument names that models know from other tools (Claude
// Code, Codex, Gemini CLI, opencode, Cursor, Cline, VS Code, the reference
// servers). The tag alias:"@file" adds a whole group.
var aliasGroups = map[string]string{
	"@file":  "path filename file_name file filepath absolute_path target_file relative_path relative_workspace_path",
	"@dir":   "directory dir_path dir directory_path target_directory absolute_path relative_workspace_path folder search_path search_directory root_dir",
	"@old":   "old_str old_text old old_content search find search_string",
	"@new":   "new_str new_text new new_content replace replacement replace_string",
	"@limit": "max_results max_result_count max_count max_entries max_items num_results",
	"@leave": "excludes exclude_pattern exclude_patterns exclude_glob ignore ignores ignore_pattern ignore_patterns ignore_globs",
}

// explanationNames are arguments in which models explain a call. A tool without
// such an argument ignores it without a note.
var explanationNames = strings.Fields("explanation description reason reasoning purpose thought instruction instructions justification goal task_progress")

// aliases reads the tag alias; a name that begins with @ names a group.
func (b *builder) aliases(tags map[string]string, own, where string) []string {
	text, ok := tags["alias"]
	if !ok {
		return nil
	}
	var names []string
	for alias := range strings.SplitSeq(text, ",") {
		alias = strings.TrimSpace(alias)
		group, isGroup := aliasGroups[alias]
		switch {
		case isGroup:
			names = append(names, slices.DeleteFunc(strings.Fields(group), func(name string) bool {
				return name == own || slices.Contains(names, name)
			})...)
		case alias == "" || slices.Contains(names, alias):
			b.fault(where, "alias:%q: empty or repeated name", text)
		default:
			names = append(names, alias)
		}
	}
	return names
}

// lookup finds a property by the name that a caller gave: the property's name,
// an alias, or, if tolerant, either in camelCase or kebab-case. own is the name
// as written in the schema.
func (s *schema) lookup(name string, tolerant bool) (own string, i int, known bool) {
	if i, known = s.byName[name]; known || !tolerant {
		return name, i, known
	}
	own = snakeCase(name)
	i, known = s.byName[own]
	return own, i, known
}

// shareAlias adds an alias of other properties to property i, if the JSON type
// of a value tells it from each of them. It reports whether it did.
func (s *schema) shareAlias(alias string, i int) bool {
	for _, other := range append([]int{s.byName[alias]}, s.sharedAliases[alias]...) {
		a, b := jsonKind(s.properties[i].target().kind), jsonKind(s.properties[other].target().kind)
		if other == i || a == 0 || b == 0 || a == b {
			return false
		}
	}
	if s.sharedAliases == nil {
		s.sharedAliases = map[string][]int{}
	}
	s.sharedAliases[alias] = append(s.sharedAliases[alias], i)
	return true
}

// propertyFor returns the property that a member of all is for. If several
// share its name, the value's type decides: regex:"a+" is the pattern,
// regex:true says that the pattern is a regular expression. A property that is
// also given by its own name, or whose type the value has only after
// conversion, ranks lower.
func (c *checker) propertyFor(s *schema, all []member, m member, at *path) (i int, known bool) {
	name, first, known := s.lookup(m.name, c.tolerant)
	if len(s.sharedAliases[name]) == 0 || !c.tolerant {
		return first, known
	}
	best, most := first, 0
	for _, i := range append([]int{first}, s.sharedAliases[name]...) {
		p, rank := s.properties[i], 0
		trial := checker{tolerant: true}
		switch trial.check(p.schema, m.value, at.member(m.name)); {
		case kindFits(p.target().kind, m.value.kind):
			rank = 2
		case len(trial.faults) == 0:
			rank = 1
		}
		if rank > 0 && !slices.ContainsFunc(all, func(o member) bool { return o.name == p.name && o.name != m.name }) {
			rank += 2
		}
		if rank > most {
			best, most = i, rank
		}
	}
	return best, true
}

// snakeCase converts oldString, OldString, oldSTRING and old-string to
// old_string. Names of one or two letters and options such as -A stay
// unchanged, since their case is significant.
func snakeCase(name string) string {
	if len(name) < 3 || len(name) > 64 || name[0] == '-' {
		return name
	}
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if r == '-' || r == ' ' {
			r = '_'
		}
		begins := unicode.IsUpper(r) && i > 0 && runes[i-1] != '_' && runes[i-1] != '-' &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// isExplanation reports whether an unknown argument can be ignored without a
// note.
func isExplanation(name string, value *node) bool {
	return value.kind == '"' && slices.Contains(explanationNames, snakeCase(name))
}
