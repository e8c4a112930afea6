// Package policy decides on a shell command before it runs: whether it may run,
// must not run, or needs the user's approval, or whether its text does not tell.
//
// It parses the command as bash would (mvdan.cc/sh/v3/syntax) and checks every
// simple command in it: in pipelines, lists, subshells, functions, $(…), `…`
// and <(…), in code given to bash -c, eval, trap or a here-document, and after
// programs that start another one (env, timeout, xargs, find -exec, …). Words
// are checked after expansion: c"u"rl, \curl, $'\x63url', a=curl; $a and
// /usr/bin/../bin/curl are all curl, while `echo links are good` and
// `git log --grep=curl` run nothing that is banned.
//
// The kernel's sandbox is the barrier (package proc); this package is guidance
// with clear messages. So a part whose effect the text does not tell, such as
// $(pick) or python -c, is not denied by default, but reported as Undecided.
//
// The order of checks, for each simple command:
//
//  1. sudo, su, doas and the like are denied.
//  2. Deny rules. They also apply where an unknown word could be a name that
//     the rule names, and where code is hidden.
//  3. Network clients are denied while the network is off, except for loopback
//     URLs. An allow rule that names the client lifts this ban.
//  4. Ask rules.
//  5. In allow-list mode, a command that no allow rule matches and one with any
//     doubt is denied. Programs that only start another one, and builtins
//     without effect outside the shell, need no rule.
//
// Deny goes before ask, and ask before allow. A command that does not parse is
// denied in both modes, since bash runs the lines before the faulty one. A few
// forms that bash accepts are not understood and denied as well: subscripts with
// blanks outside quotes, and (( that begins two subshells.
//
// Undecided by design: command words made by substitution, indirection or
// operators (${a#x}, ${!a}); code that a shell reads from a pipe or a file;
// code of other languages, make, scripts; options, settings and variables that
// make a program run another one (tar -I, git -c core.pager=…, PAGER, PATH,
// LD_PRELOAD, IFS), unless their value is harmless; arithmetic and subscripts
// with unknown values. Not detected at all: what a file that the command writes
// does when another program later reads it as its configuration.
//
// A doubt counts as hiding a command that a deny or ask rule names, unless the
// command runs an existing file (./x, source x, python x.py), or code of another
// language without any of the usual words for starting a program
// (harmless_code.go). The rules also apply to a command that runs in a container
// or on another machine: it may have the files of this one.
//
// Rules are words: "git push *". The first word names the program, by base name
// unless it has a slash. A * within a word matches any text, and a word that is
// only * any number of words. A deny or ask rule matches options in any order
// and position (git -C dir push) and in other spellings (rm -rf is also
// rm -r -f), and it matches with any further words. An allow rule matches word
// for word, and a longer command only if the rule ends in *.
//
// Bounds: 64 KiB of text, 20 000 syntax nodes, texts within texts 6 deep. A
// command that exceeds them is denied.
package policy

import (
	"fmt"
	"slices"
)

// Mode says what happens to a command that no rule decides.
type Mode string

const (
	// BanList runs a command that nothing forbids, even if the text does not
	// tell what it does.
	BanList Mode = "ban-list"
	// AllowList denies a command that no allow rule matches or whose text does
	// not tell what it does.
	AllowList Mode = "allow-list"
)

// Config holds the rules and settings of a Policy. The zero value is the
// default: ban-list, no rules, network off.
type Config struct {
	Mode             Mode     // "": BanList
	Allow, Deny, Ask []string // rules such as "git push *"; see the package comment
	// Network says that commands may use the network, all of it or some hosts,
	// so that network clients are not denied.
	Network bool
}

// Validate returns an error that names the first invalid mode or rule.
func (c *Config) Validate() error {
	if !slices.Contains([]Mode{"", BanList, AllowList}, c.Mode) {
		return fmt.Errorf("--policy %q: use %s or %s", c.Mode, BanList, AllowList)
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

// Policy decides on commands. It is immutable and safe for concurrent use.
type Policy struct {
	mode             Mode
	network          bool
	allow, deny, ask []rule
}

// New returns the policy for config, or the error of Config.Validate.
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
