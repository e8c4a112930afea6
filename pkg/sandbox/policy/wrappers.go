package policy

import (
	"strings"
)

// wrappers lists the programs whose arguments are another command, with the grammars
// of their manual pages (GNU coreutils 9, util-linux 2.40, findutils 4.10, strace 6,
// busybox 1.36).
var wrappers = map[string]grammar{
	"builtin":           {transparent: true},
	"chroot":            {long: "userspec groups", operands: 1, readsCommands: true},
	"choom":             {short: "np", long: "adjust pid", inertOptions: "-p --pid"},
	"chronic":           {},
	"chrt":              {short: "TPD", long: "sched-runtime sched-period sched-deadline", operands: 1, inertOptions: "-p --pid -m --max"},
	"command":           {transparent: true, inertOptions: "-v -V"},
	"dbus-run-session":  {long: "config-file dbus-daemon"},
	"doas":              {},
	"env":               {short: "uSCa", long: "unset split-string chdir argv0", transparent: true},
	"exec":              {short: "a", transparent: true},
	"fakeroot":          {short: "lsib", long: "lib faked"},
	"faketime":          {short: "", operands: 1},
	"firejail":          {readsCommands: true},
	"flock":             {short: "wEc", long: "wait timeout conflict-exit-code command", operands: 1, codeOption: "-c --command", transparent: true},
	"ifne":              {},
	"ionice":            {short: "cnPu", long: "class classdata pgid uid", transparent: true, inertOptions: "-p --pid"},
	"ltrace":            {short: "aAbDeFlnopsSuwxX", long: "output"},
	"nice":              {short: "n", long: "adjustment", optional: "0123456789", transparent: true},
	"nohup":             {transparent: true},
	"nsenter":           {short: "tSGW", long: "target setuid setgid wdns", optional: "muinpCTrw", readsCommands: true},
	"numactl":           {short: "iNmCpPlSfLo", long: "interleave preferred cpunodebind physcpubind membind"},
	"pkexec":            {},
	"prlimit":           {short: "po", long: "pid output", optional: "cdefilmnqrstuvxy"},
	"rlwrap":            {short: "abcCdDefgHijlmMnopPqrRsStwz"},
	"runuser":           {},
	"script":            {short: "cEIOBTmo", long: "command echo log-in log-out log-io log-timing logging-format output-limit", codeOption: "-c --command", readsCommands: true},
	"setarch":           {},
	"sg":                {short: "c", long: "command", operands: 1, codeOption: "-c --command", joinsWords: true},
	"setpriv":           {long: "ambient-caps inh-caps bounding-set ruid euid rgid egid reuid regid groups securebits pdeathsig ptracer landlock-access landlock-rule seccomp-filter selinux-label apparmor-profile", readsCommands: true},
	"setsid":            {transparent: true},
	"i386":              {},
	"i486":              {},
	"i586":              {},
	"i686":              {},
	"linux32":           {},
	"linux64":           {},
	"stdbuf":            {short: "ioe", long: "input output error", transparent: true},
	"strace":            {short: "abeEIoOpPsSuUX", long: "trace output attach string-limit user env columns", inertOptions: "-p --attach"},
	"su":                {},
	"sudo":              {},
	"systemd-run":       {short: "puHMEt", long: "unit property slice description uid gid nice working-directory setenv on-active host machine service-type"},
	"systemd-inhibit":   {long: "what who why mode"},
	"taskset":           {operands: 1, transparent: true, inertOptions: "-p --pid"},
	"time":              {short: "fo", long: "format output", transparent: true},
	"timeout":           {short: "ks", long: "kill-after signal", operands: 1, transparent: true},
	"unbuffer":          {},
	"unshare":           {short: "SGRwl", long: "root wd setuid setgid map-user map-group map-users map-groups monotonic boottime load-interp", optional: "muinpCT", readsCommands: true},
	"valgrind":          {},
	"watch":             {short: "nq", long: "interval equexit", optional: "d", joinsWords: true},
	"x86_64":            {},
	"xvfb-run":          {short: "efnpsw", long: "error-file auth-file server-num xauth-protocol server-args wait"},
	"eatmydata":         {},
	"catchsegv":         {},
	"torsocks":          {short: "uaP"},
	"proxychains":       {short: "f"},
	"proxychains4":      {short: "f"},
	"ssh-agent":         {short: "aEtOP"},
	"start-stop-daemon": {short: "xaupnNrcgdPkRsm", long: "exec startas user pidfile name nicelevel chuid group chdir procsched iosched umask signal retry ppid pid"},
}

// startedCommand returns the command that a program starts, or nil if it starts
// nothing. It may check parts of the command itself. transparent says that the
// program does nothing else, so that no allow rule needs to name it.
func (s *shellText) startedCommand(c simpleCommand) (inner []field, transparent bool) {
	switch {
	case c.progName == "xargs":
		return s.xargsCommand(c), true
	case c.progName == "find" || c.progName == "gfind":
		s.checkFindExec(c)
		return nil, false
	case c.progName == "parallel":
		s.checkParallel(c)
		return nil, false
	case c.progName == "busybox" || c.progName == "toybox":
		if len(c.args()) > 0 && !strings.HasPrefix(c.args()[0].text, "-") {
			s.denyNetworkApplet(c.args())
			return c.args(), true
		}
		return nil, false
	case strings.HasPrefix(c.progName, "ld-linux") || strings.HasPrefix(c.progName, "ld-musl") || strings.HasPrefix(c.progName, "ld.so") || c.progName == "ld-2.31.so":
		g := grammar{long: "library-path preload argv0 audit inhibit-rpath glibc-hwcaps-prepend glibc-hwcaps-mask"}
		return s.wrappedCommand(c, g), false
	case isShell(c.progName):
		s.checkShell(c)
		return nil, true
	case c.progName == "hyperfine":
		for _, arg := range c.args() {
			if !strings.HasPrefix(arg.text, "-") {
				s.checkCommandValue(arg, "an argument of hyperfine")
			}
		}
		return nil, false
	}
	if r, ok := subcommandRunners[c.progName]; ok {
		return r.startedCommand(s, c.args()), false
	}
	g, ok := wrappers[c.progName]
	if !ok {
		return nil, false
	}
	return s.wrappedCommand(c, g), g.transparent
}

// wrappedCommand parses a wrapper's command line by its grammar and returns the
// words of the command that it starts, or nil if it starts nothing. Code for a
// shell is checked at once.
func (s *shellText) wrappedCommand(c simpleCommand, g grammar) (command []field) {
	args := c.args()
	if c.progName == "setarch" && len(args) > 0 && !strings.HasPrefix(args[0].text, "-") {
		args = args[1:] // the architecture, which its options follow
	}
	options, rest, sure := g.leadingOptions(args)
	if !sure {
		s.addDoubt(true, "it cannot be told which of its words %s runs", c.progName)
	}
	if g.inertOptions != "" {
		if _, nothing := lastValue(options, strings.Fields(g.inertOptions)...); nothing {
			return nil
		}
	}
	if c.progName == "chrt" && len(rest) > 0 && strings.Trim(rest[0].text, "0123456789") != "" {
		g.operands = 0 // later versions need no priority
	}
	if g.operands > 0 && len(rest) >= g.operands {
		rest = rest[g.operands:]
		if g.codeOption != "" && len(rest) > 0 { // flock FILE -c CODE
			more, after, _ := g.leadingOptions(rest)
			options, rest = append(options, more...), after
		}
	}
	if g.codeOption != "" {
		if code, ok := lastValue(options, strings.Fields(g.codeOption)...); ok {
			s.checkNestedShell(code, []field{}, field{text: "sh"})
			return nil
		}
		if c.progName == "script" {
			rest = nil // a file to write to
		}
	}
	switch c.progName {
	case "env":
		return s.skipEnvAssignments(options, rest)
	case "watch":
		_, rest, _ = g.leadingOptions(c.args())
	case "start-stop-daemon":
		if program, ok := lastValue(options, "-a", "--startas", "-x", "--exec"); ok {
			return append([]field{program}, rest...)
		}
	}
	if len(rest) == 0 && g.readsCommands && sure {
		s.addDoubt(true, "%s without a command starts a shell that reads its input", c.progName)
	}
	if g.joinsWords && len(rest) > 0 {
		s.checkNestedShell(joinWords(rest), []field{}, field{text: "sh"})
		return nil
	}
	return rest
}

// joinWords returns the words of fields joined with spaces, as eval, watch and
// ssh do. If the number of words is not known, the result has unknown text.
func joinWords(fields []field) field {
	texts := make([]string, len(fields))
	many := false
	for i, f := range fields {
		texts[i], many = f.text, many || f.maybeMany
	}
	text := strings.Join(texts, " ")
	if many && !strings.Contains(text, unknownText) {
		text += " " + unknownText
	}
	return field{text: text}
}
