package mcpkit

import (
	"slices"
	"strings"
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

// parseAliasTag returns the names in the tag alias, which may name groups of
// aliasGroups. ownName, the argument's own name, is left out of groups. where
// is the field, for faults.
func (b *schemaBuilder) parseAliasTag(tags map[string]string, ownName, where string) []string {
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
				return name == ownName || slices.Contains(names, name)
			})...)
		case alias == "" || slices.Contains(names, alias):
			b.faultf(where, "alias:%q: empty or repeated name", text)
		default:
			names = append(names, alias)
		}
	}
	return names
}

// shareAlias makes an alias that other properties have an alias of property i,
// too, if the JSON type of a value tells them apart. It reports whether it did.
func (s *schema) shareAlias(alias string, i int) (shared bool) {
	for _, other := range append([]int{s.byName[alias]}, s.sharedAliases[alias]...) {
		a, b := jsonKind(s.properties[i].resolveRef().kind), jsonKind(s.properties[other].resolveRef().kind)
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
