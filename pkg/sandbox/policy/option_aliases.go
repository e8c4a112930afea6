package policy

import (
	"slices"
	"strings"
)

// sameOptions lists, by program and subcommand, options with the same meaning:
// each word is one option with all its letters and long names, separated by
// commas. After "<" follow options that include it.
var sameOptions = map[string]string{
	"rm":           "r,R,recursive f,force i,interactive v,verbose d,dir",
	"cp":           "r,R,recursive<a,archive f,force p,preserve<a,archive i,interactive a,archive",
	"mv":           "f,force i,interactive n,no-clobber",
	"ln":           "s,symbolic f,force",
	"chmod":        "R,recursive",
	"chown":        "R,recursive h,no-dereference",
	"chgrp":        "R,recursive",
	"mkdir":        "p,parents",
	"sed":          "i,in-place n,quiet,silent",
	"tar":          "x,extract,get c,create r,append u,update P,absolute-names",
	"rsync":        "delete,del a,archive r,recursive<a,archive",
	"truncate":     "s,size",
	"git push":     "f,force d,delete n,dry-run u,set-upstream",
	"git clean":    "f,force n,dry-run q,quiet",
	"git branch":   "d,delete<D D m,move<M f,force<D",
	"git commit":   "n,no-verify a,all amend",
	"git reset":    "hard soft mixed",
	"git rm":       "f,force cached",
	"git fetch":    "f,force p,prune a,append",
	"git pull":     "f,force r,rebase",
	"git add":      "f,force A,all,no-ignore-removal u,update",
	"git checkout": "f,force",
	"git switch":   "f,force,discard-changes C,force-create",
	"git stash":    "u,include-untracked",
	"git tag":      "d,delete f,force",
	"npm install":  "g,global",
	"npm i":        "g,global",
	"pip install":  "t,target e,editable",
}

// valueOptionLetters lists, by the key of sameOptions, short options whose
// value may be attached.
var valueOptionLetters = map[string]string{
	"git commit": "mFcCtuS", "git push": "o", "git branch": "u", "git tag": "mFu", "git clean": "e", "tar": "fCXTIFbKVgHL", "sed": "efl", "rsync": "efMTB",
	"cp": "tS", "mv": "tS", "ln": "tS", "mkdir": "m", "truncate": "sr", "pip install": "cetir",
}

// optionGroup is one option in all its spellings.
type optionGroup struct {
	same       []string // letters and long names
	includedBy []string // options that include it
}

// optionAliases returns the option groups of the rule's program, and the key of
// sameOptions: the program or, where the table has it, program and subcommand.
func (r rule) optionAliases() (groups []optionGroup, key string) {
	_, key = splitProgram(r.words[0])
	for _, word := range r.words[1:] {
		if !strings.HasPrefix(word, "-") && word != "*" {
			if _, ok := sameOptions[key+" "+word]; ok {
				key += " " + word
			}
			break
		}
	}
	for _, text := range strings.Fields(sameOptions[key]) {
		same, more, _ := strings.Cut(text, "<")
		g := optionGroup{same: strings.Split(same, ",")}
		if more != "" {
			g.includedBy = strings.Split(more, ",")
		}
		groups = append(groups, g)
	}
	return groups, key
}

// hasOptionAlias says whether args contain another spelling of a rule's option:
// for a cluster, one of each letter. It returns yes or no.
func (r rule) hasOptionAlias(option string, args []field) answer {
	groups, key := r.optionAliases()
	if signal := strings.TrimLeft(option, "-"); slices.Contains([]string{"kill", "pkill", "killall"}, key) {
		return hasSignal(signal, args)
	}
	if len(groups) == 0 {
		return no
	}
	wanted := []string{strings.TrimPrefix(option, "--")}
	if !strings.HasPrefix(option, "--") {
		wanted = strings.Split(option[1:], "")
	}
	var long []string
	for _, g := range groups {
		for _, name := range g.same {
			if len(name) > 1 {
				long = append(long, name)
			}
		}
	}
	for _, name := range wanted {
		i := slices.IndexFunc(groups, func(g optionGroup) bool { return slices.Contains(g.same, name) })
		names := []string{name}
		if i >= 0 {
			names = slices.Concat(groups[i].same, groups[i].includedBy)
		} else if strings.HasPrefix(option, "--") && !slices.Contains(long, name) {
			return no
		}
		if key == "git branch" && name == "D" && r.hasOptionAlias("-df", args) == yes {
			continue
		}
		if !slices.ContainsFunc(names, func(name string) bool { return hasOptionNamed(name, long, key, args) }) {
			return no
		}
	}
	return yes
}

// hasOptionNamed reports whether args contain an option by that name: a letter
// in a cluster, or a long name, which may be abbreviated unless it is the name
// of another option in long. key is the key of sameOptions.
func hasOptionNamed(name string, long []string, key string, args []field) bool {
	for i, arg := range args {
		text := arg.text
		if strings.HasPrefix(key, "tar") && i == 0 && len(text) > 0 && text[0] != '-' {
			text = "-" + text
		}
		switch {
		case len(text) < 2 || text[0] != '-':
		case strings.HasPrefix(text, "--"):
			word, _, _ := strings.Cut(text[2:], "=")
			if word != "" && len(name) > 1 && strings.HasPrefix(name, word) && (word == name || !slices.Contains(long, word)) {
				return true
			}
		case len(name) == 1:
			letters := text[1:]
			if end := strings.IndexAny(letters, valueOptionLetters[key]); end >= 0 {
				letters = letters[:end+1]
			}
			if strings.Contains(letters, name) {
				return true
			}
		}
	}
	return false
}
