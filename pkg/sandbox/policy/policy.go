// Package policy gives verdicts on a shell command before it runs: may it, may
// it not, must somebody be asked, or can nobody tell.
//
// It reads the command as bash would (mvdan.cc/sh/v3/syntax) and judges every
// simple command in it: in pipelines, lists, subshells, functions, $(…), `…`
// and <(…), in the text given to bash -c, eval, trap or a here-document, and
// behind programs that start another one (env, timeout, xargs, find -exec, …).
// Words are judged after expansion: c”url, \curl, $'\x63url', a=curl; $a
// and /usr/bin/../bin/curl are all curl, while `echo links are good` and
// `git log --grep=curl` run nothing that is banned.
//
// The kernel is the wall (package proc); this is guidance with clear words. So
// what cannot be told from the text, like $(pick) or python -c, is not
// refused by default but reported as Undecided.
//
// The order of judgement, for each simple command:
//
//  1. sudo, su, doas and their kin are denied.
//  2. Deny rules; also where a word that is not known could be a name that
//     such a rule names, and where code is hidden from sight.
//  3. Network clients are denied while the network is off, but for loopback
//     URLs; an allow rule that names the client lifts this.
//  4. Ask rules.
//  5. In allow-list mode: what no allow rule matches, and all that is
//     undecided, is denied. Programs that only start another one, and
//     builtins without effect outside the shell, need no rule.
//
// Deny beats ask, and ask beats allow. A command that does not parse is denied
// in both modes: bash runs the lines before the one it stumbles over. A few
// forms that bash takes are not understood and denied as well: subscripts with
// blanks outside quotes, (( that begins two subshells.
//
// Undecided by design: command words made by substitution, indirection or
// operators (${a#x}, ${!a}); code that a shell reads from a pipe or a file;
// other languages' code, make, scripts; options, settings and variables that
// make a program run another one (tar -I, git -c core.pager=…, PAGER, PATH,
// LD_PRELOAD, IFS), unless their value is harmless; arithmetic and subscripts
// on values that are not known. Not seen at all: what a file, once written,
// does when another program reads it as its configuration.
//
// What is undecided counts as hiding a command that a deny or ask rule names,
// unless it runs a file that lies there (./x, source x, python x.py), or code
// of another language that none of the usual words for starting a program is
// in (harmless.go). What runs in a container or on another machine is held to
// the rules, too: it may have the files of this one.
//
// Rules are words: "git push *". The first names the program, by base name
// unless it has a slash; * in a word means any text, a word that is only * any
// number of words. A deny or ask rule holds however options are
// ordered or put between its words (git -C dir push), its own options are
// found anywhere (rm -rf is also rm -r -f), and it holds for whatever follows.
// An allow rule matches word for word, and longer commands only where it ends
// in *.
//
// Bounds: 64 KiB of text, 20 000 syntax nodes, texts within texts 6 deep;
// beyond them a command is denied.
package policy

import (
	"fmt"
	"slices"
)

// Mode says what becomes of a command that no rule decides.
type Mode string

const (
	// BanList runs what nothing forbids, and what cannot be decided.
	BanList Mode = "ban-list"
	// AllowList refuses what no allow rule matches or what cannot be decided.
	AllowList Mode = "allow-list"
)

// Config says what a command may be. The zero value is the default: ban-list,
// no rules of the user's, network off.
type Config struct {
	// Mode is BanList where empty.
	Mode Mode
	// Allow, Deny and Ask are rules like "git push *".
	Allow, Deny, Ask []string
	// Network says that the network is open (to all or to some hosts), so
	// that its clients are of use and not banned.
	Network bool
}

// Validate reports the first setting that can never work, by its name.
func (c *Config) Validate() error {
	if !slices.Contains([]Mode{"", BanList, AllowList}, c.Mode) {
		return fmt.Errorf("mode %q: use %s or %s", c.Mode, BanList, AllowList)
	}
	for _, set := range []struct {
		name  string
		rules []string
	}{{"allow", c.Allow}, {"deny", c.Deny}, {"ask", c.Ask}} {
		if _, err := parseRules(set.name, set.rules); err != nil {
			return err
		}
	}
	return nil
}

// Policy judges commands. It is immutable and may be used by many goroutines
// at once.
type Policy struct {
	mode             Mode
	network          bool
	allow, deny, ask []rule
}

// New returns the policy that config describes, or what is wrong with it.
func New(config Config) (*Policy, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	p := &Policy{mode: config.Mode, network: config.Network}
	if p.mode == "" {
		p.mode = BanList
	}
	p.allow, _ = parseRules("allow", config.Allow)
	p.deny, _ = parseRules("deny", config.Deny)
	p.ask, _ = parseRules("ask", config.Ask)
	return p, nil
}
