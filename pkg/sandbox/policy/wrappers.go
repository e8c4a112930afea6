package policy

import (
	"strings"
)

// wrappers lists the programs whose arguments are another command, with the grammars
// of their manual pages (GNU coreutils 9, util-linux 2.40, findutils 4.10, strace 6,
// busybox 1.36).
var wrappers = map[string]grammar{
	"builtin":           {transparent: true},
	"chroot":            {long: "userspec groups", operands: 1, reads: true},
	"choom":             {short: "np", long: "adjust pid", only: "-p --pid"},
	"chronic":           {},
	"chrt":              {short: "TPD", long: "sched-runtime sched-period sched-deadline", operands: 1, only: "-p --pid -m --max"},
	"command":           {transparent: true, only: "-v -V"},
	"dbus-run-session":  {long: "config-file dbus-daemon"},
	"doas":              {},
	"env":               {short: "uSCa", long: "unset split-string chdir argv0", transparent: true},
	"exec":              {short: "a", transparent: true},
	"fakeroot":          {short: "lsib", long: "lib faked"},
	"faketime":          {short: "", operands: 1},
	"firejail":          {reads: true},
	"flock":             {short: "wEc", long: "wait timeout conflict-exit-code command", operands: 1, command: "-c --command", transparent: true},
	"ifne":              {},
	"ionice":            {short: "cnPu", long: "class classdata pgid uid", transparent: true, only: "-p --pid"},
	"ltrace":            {short: "aAbDeFlnopsSuwxX", long: "output"},
	"nice":              {short: "n", long: "adjustment", optional: "0123456789", transparent: true},
	"nohup":             {transparent: true},
	"nsenter":           {short: "tSGW", long: "target setuid setgid wdns", optional: "muinpCTrw", reads: true},
	"numactl":           {short: "iNmCpPlSfLo", long: "interleave preferred cpunodebind physcpubind membind"},
	"pkexec":            {},
	"prlimit":           {short: "po", long: "pid output", optional: "cdefilmnqrstuvxy"},
	"rlwrap":            {short: "abcCdDefgHijlmMnopPqrRsStwz"},
	"runuser":           {},
	"script":            {short: "cEIOBTmo", long: "command echo log-in log-out log-io log-timing logging-format output-limit", command: "-c --command", reads: true},
	"setarch":           {},
	"sg":                {short: "c", long: "command", operands: 1, command: "-c --command", shell: true},
	"setpriv":           {long: "ambient-caps inh-caps bounding-set ruid euid rgid egid reuid regid groups securebits pdeathsig ptracer landlock-access landlock-rule seccomp-filter selinux-label apparmor-profile", reads: true},
	"setsid":            {transparent: true},
	"i386":              {},
	"i486":              {},
	"i586":              {},
	"i686":              {},
	"linux32":           {},
	"linux64":           {},
	"stdbuf":            {short: "ioe", long: "input output error", transparent: true},
	"strace":            {short: "abeEIoOpPsSuUX", long: "trace output attach string-limit user env columns", only: "-p --attach"},
	"su":                {},
	"sudo":              {},
	"systemd-run":       {short: "puHMEt", long: "unit property slice description uid gid nice working-directory setenv on-active host machine service-type"},
	"systemd-inhibit":   {long: "what who why mode"},
	"taskset":           {operands: 1, transparent: true, only: "-p --pid"},
	"time":              {short: "fo", long: "format output", transparent: true},
	"timeout":           {short: "ks", long: "kill-after signal", operands: 1, transparent: true},
	"unbuffer":          {},
	"unshare":           {short: "SGRwl", long: "root wd setuid setgid map-user map-group map-users map-groups monotonic boottime load-interp", optional: "muinpCT", reads: true},
	"valgrind":          {},
	"watch":             {short: "nq", long: "interval equexit", optional: "d", shell: true},
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

// unwrap returns the command that a program starts, nil where it starts none,
// and whether the program does nothing but that.
func (s *scope) unwrap(c call) (inner []field, transparent bool) {
	switch {
	case c.base == "xargs":
		return s.xargs(c), true
	case c.base == "find" || c.base == "gfind":
		s.find(c)
		return nil, false
	case c.base == "parallel":
		s.parallel(c)
		return nil, false
	case c.base == "busybox" || c.base == "toybox":
		if len(c.args()) > 0 && !strings.HasPrefix(c.args()[0].text, "-") {
			s.applet(c.args())
			return c.args(), true
		}
		return nil, false
	case strings.HasPrefix(c.base, "ld-linux") || strings.HasPrefix(c.base, "ld-musl") || strings.HasPrefix(c.base, "ld.so") || c.base == "ld-2.31.so":
		g := grammar{long: "library-path preload argv0 audit inhibit-rpath glibc-hwcaps-prepend glibc-hwcaps-mask"}
		return s.command(c, g), false
	case shellName(c.base):
		s.shell(c)
		return nil, true
	case c.base == "hyperfine":
		for _, arg := range c.args() {
			if !strings.HasPrefix(arg.text, "-") {
				s.commandValue(arg, "an argument of hyperfine")
			}
		}
		return nil, false
	}
	if r, ok := runners[c.base]; ok {
		return r.command(s, c.args()), false
	}
	g, ok := wrappers[c.base]
	if !ok {
		return nil, false
	}
	return s.command(c, g), g.transparent
}

// command reads a wrapper's command line and returns the words after it.
func (s *scope) command(c call, g grammar) []field {
	args := c.args()
	if c.base == "setarch" && len(args) > 0 && !strings.HasPrefix(args[0].text, "-") {
		args = args[1:] // the architecture, which its options follow
	}
	options, rest, sure := g.options(args)
	if !sure {
		s.doubt(true, "it cannot be told which of its words %s runs", c.base)
	}
	if g.only != "" {
		if _, nothing := valueOf(options, strings.Fields(g.only)...); nothing {
			return nil
		}
	}
	if c.base == "chrt" && len(rest) > 0 && strings.Trim(rest[0].text, "0123456789") != "" {
		g.operands = 0 // later versions need no priority
	}
	if g.operands > 0 && len(rest) >= g.operands {
		rest = rest[g.operands:]
		if g.command != "" && len(rest) > 0 { // flock FILE -c CODE
			more, after, _ := g.options(rest)
			options, rest = append(options, more...), after
		}
	}
	if g.command != "" {
		if code, ok := valueOf(options, strings.Fields(g.command)...); ok {
			s.nested(code, []field{}, field{text: "sh"})
			return nil
		}
		if c.base == "script" {
			rest = nil // a file to write to
		}
	}
	switch c.base {
	case "env":
		return s.env(options, rest)
	case "watch":
		_, rest, _ = g.options(c.args())
	case "start-stop-daemon":
		if program, ok := valueOf(options, "-a", "--startas", "-x", "--exec"); ok {
			return append([]field{program}, rest...)
		}
	}
	if len(rest) == 0 && g.reads && sure {
		s.doubt(true, "%s without a command starts a shell that reads its input", c.base)
	}
	if g.shell && len(rest) > 0 {
		s.nested(joined(rest), []field{}, field{text: "sh"})
		return nil
	}
	return rest
}

// joined puts words together as eval, watch and ssh do.
func joined(fields []field) field {
	texts := make([]string, len(fields))
	many := false
	for i, f := range fields {
		texts[i], many = f.text, many || f.many
	}
	text := strings.Join(texts, " ")
	if many && !strings.Contains(text, anything) {
		text += " " + anything
	}
	return field{text: text}
}
