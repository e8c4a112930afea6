package policy

import (
	"slices"
	"strings"
)

// Rules name programs and options in one spelling. This file knows others.

// otherNames are programs that go by the name of another one, too.
var programAliases = map[string]string{
	"gawk": "awk", "mawk": "awk", "nawk": "awk", "original-awk": "awk", "bsdtar": "tar", "nodejs": "node", "gmake": "make",
}

// gnu are the programs that other systems prefix with a g.
var gPrefixedPrograms = strings.Fields("rm mv cp ln chmod chown chgrp dd mkdir rmdir sed tar find xargs awk truncate shred touch tee install")

// spellings returns a command as it is and under the other names of its
// program, for rules to be compared with.
func aliasSpellings(fields []field) [][]field {
	all := [][]field{fields}
	_, base := splitProgram(fields[0].text)
	add := func(words ...string) {
		var named []field
		for _, word := range words {
			named = append(named, field{text: word})
		}
		all = append(all, append(named, fields[1:]...))
	}
	if sub, ok := strings.CutPrefix(base, "git-"); ok && sub != "" {
		add("git", sub)
	}
	if name, ok := programAliases[base]; ok {
		add(name)
	}
	for _, reading := range all[:len(all):len(all)] {
		if push := asGitPush(reading); push != nil {
			all = append(all, push)
		}
	}
	if name, ok := strings.CutPrefix(base, "g"); ok && slices.Contains(gPrefixedPrograms, name) {
		add(name)
	}
	plain := strings.TrimRight(base, "0123456789.")
	if plain != base && slices.Contains([]string{"python", "pip", "ruby", "perl", "node", "php", "lua", "pypy"}, plain) {
		add(plain)
		if major, _, ok := strings.Cut(base, "."); ok {
			add(major)
		}
	}
	if plain == "python" {
		for i, arg := range fields[1:] {
			if i+2 < len(fields) && len(arg.text) > 1 && arg.text[0] == '-' && strings.HasSuffix(arg.text, "m") && !strings.HasPrefix(arg.text, "--") {
				module := fields[i+2:]
				all = append(all, module)
				break
			}
		}
	}
	return all
}

// pushed returns a command of git that pushes under another name as git push,
// or nil.
func asGitPush(fields []field) []field {
	if _, base := splitProgram(fields[0].text); base != "git" {
		return nil
	}
	at := 1 + countGlobalArgs(fields[1:])
	if at < len(fields) && fields[at].is("send-pack", "http-push") || at+1 < len(fields) && fields[at].is("subtree") && fields[at+1].is("push") {
		all := slices.Clone(fields)
		all[at] = field{text: "push"}
		return all
	}
	return nil
}

// fits is the best answer of a rule for a command, however that is spelt.
func (r rule) bestMatch(fields []field) answer {
	best := no
	for _, reading := range aliasSpellings(fields) {
		best = max(best, r.matchesCommand(reading))
	}
	return best
}
