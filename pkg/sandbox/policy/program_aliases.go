package policy

import (
	"slices"
	"strings"
)

// Rules name programs and options in one spelling. This file knows others.

// programAliases maps programs to the program that they are a variant of, whose
// rules apply to them.
var programAliases = map[string]string{
	"gawk": "awk", "mawk": "awk", "nawk": "awk", "original-awk": "awk", "bsdtar": "tar", "nodejs": "node", "gmake": "make",
}

// gPrefixedPrograms are the programs that other systems install with the prefix
// g.
var gPrefixedPrograms = strings.Fields("rm mv cp ln chmod chown chgrp dd mkdir rmdir sed tar find xargs awk truncate shred touch tee install")

// aliasSpellings returns a command as it is and in all other spellings of its
// program that rules may name: gawk as awk, git-push as git push, python3.12 as
// python3 and python, python -m module as module.
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

// asGitPush returns a git command that pushes by another subcommand (send-pack,
// subtree push) as git push; nil for all other commands.
func asGitPush(fields []field) []field {
	if _, base := splitProgram(fields[0].text); base != "git" {
		return nil
	}
	at := 1 + countGitGlobalArgs(fields[1:])
	if at < len(fields) && fields[at].is("send-pack", "http-push") || at+1 < len(fields) && fields[at].is("subtree") && fields[at+1].is("push") {
		all := slices.Clone(fields)
		all[at] = field{text: "push"}
		return all
	}
	return nil
}

// bestMatch returns the answer of a deny or ask rule to the spelling of a
// command that it matches best, see aliasSpellings.
func (r rule) bestMatch(fields []field) answer {
	best := no
	for _, reading := range aliasSpellings(fields) {
		best = max(best, r.matchesCommand(reading))
	}
	return best
}
