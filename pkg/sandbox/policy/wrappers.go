package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
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

// runner is a program of which subcommands start another one.
type runner struct {
	subcommands string
	operands    int // words before the command
}

var runners = map[string]runner{
	"uv": {"run", 0}, "poetry": {"run", 0}, "pdm": {"run", 0}, "hatch": {"run", 0}, "pipenv": {"run", 0}, "rye": {"run", 0}, "pixi": {"run", 0},
	"conda": {"run", 0}, "mamba": {"run", 0}, "npm": {"exec x", 0}, "pnpm": {"exec dlx", 0}, "yarn": {"exec dlx run", 0}, "bundle": {"exec", 0},
	"pyenv": {"exec", 0}, "rbenv": {"exec", 0}, "nodenv": {"exec", 0}, "opam": {"exec", 0}, "stack": {"exec", 0}, "cabal": {"exec", 0},
	"perf": {"stat record trace", 0}, "volta": {"run", 0}, "devbox": {"run", 0}, "mise": {"exec x", 0}, "asdf": {"exec", 0},
	"rustup": {"run", 1}, "direnv": {"exec", 1}, "nvm": {"exec", 1},
}

// command returns what is started. The word after an option may be its value
// or what is started, so that both readings are judged.
func (r runner) command(s *scope, args []field) []field {
	if len(args) == 0 || !slices.Contains(strings.Fields(r.subcommands), args[0].text) {
		return nil
	}
	args = args[1:]
	option := false
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		option = !args[0].is("--")
		args = args[1:]
		if !option {
			break
		}
	}
	args = args[min(r.operands, len(args)):]
	if option && len(args) > 1 {
		s.simple(args[1:], nil, false)
	}
	return args
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

// env skips assignments, which have the effect that they would have before
// the command, and splits the value of -S.
func (s *scope) env(options []option, rest []field) []field {
	if split, ok := valueOf(options, "-S", "--split-string"); ok {
		if split.unknown() {
			s.doubt(true, "env -S with words that are not known")
		}
		rest = append(splitString(split), rest...)
		more, after, _ := wrappers["env"].options(rest)
		if _, again := valueOf(more, "-S", "--split-string"); again {
			if s.check.bytes -= len(split.text); s.check.bytes < 0 {
				s.check.tooMuch("env -S within env -S")
				return nil
			}
			return s.env(more, after)
		}
		rest = after
	}
	for len(rest) > 0 {
		name, value, ok := strings.Cut(rest[0].text, "=")
		if rest[0].is("-") {
			rest = rest[1:]
			continue
		}
		if !ok || strings.Contains(name, anything) {
			break
		}
		s.environment(name, field{text: value}, "env")
		rest = rest[1:]
	}
	return rest
}

// splitString splits as env -S does: like a shell without expansions, but for
// ${NAME}, which is not known.
func splitString(f field) []field {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(strings.ReplaceAll(envBlanks(f.text), anything, "${__}")), "")
	if err != nil || len(file.Stmts) != 1 {
		return []field{{text: anything, many: true}}
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok {
		return []field{{text: anything, many: true}}
	}
	s := &scope{check: &check{policy: &Policy{}, nodes: maxNodes}, vars: newVariables(), functions: map[string]bool{}}
	var fields []field
	for _, assign := range call.Assigns {
		value := s.textOf(assign.Value, nil)
		fields = append(fields, field{text: assign.Name.Value + "=" + value.text})
	}
	return append(fields, s.fieldsOf(call.Args, nil)...)
}

// envBlanks replaces the \_ of env -S, which is a blank outside single quotes.
func envBlanks(text string) string {
	var b strings.Builder
	single := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && !single && i+1 < len(text) && text[i+1] == '_':
			b.WriteByte(' ')
			i++
			continue
		case text[i] == '\\' && i+1 < len(text):
			b.WriteByte(text[i])
			i++
		case text[i] == '\'':
			single = !single
		}
		b.WriteByte(text[i])
	}
	return b.String()
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

// xargs returns the command that xargs starts, with the arguments that it adds.
func (s *scope) xargs(c call) []field {
	g := grammar{
		short: "aEdILnPs", optional: "eil",
		long: "arg-file delimiter max-args max-procs max-chars process-slot-var",
	}
	options, rest, sure := g.options(c.args())
	if !sure {
		s.doubt(true, "it cannot be told which of its words xargs runs")
	}
	if len(rest) == 0 {
		return nil // echo
	}
	rest = slices.Clone(rest)
	replace, ok := valueOf(options, "-I", "-i", "--replace")
	if _, file := valueOf(options, "-a", "--arg-file"); file {
		s.files = false
	}
	if !ok {
		return append(rest, field{text: anything, many: true, files: s.files})
	}
	if replace.text == "" {
		replace.text = "{}"
	}
	return substitute(rest, replace.text, field{text: anything, files: s.files})
}

// substitute replaces every mark by the text of file.
func substitute(fields []field, mark string, file field) []field {
	out := make([]field, len(fields))
	for i, f := range fields {
		out[i] = field{text: strings.ReplaceAll(f.text, mark, file.text), many: f.many, files: f.is(mark) && file.files}
	}
	return out
}

// find judges the commands of -exec and its kin.
func (s *scope) find(c call) {
	args, file := c.args(), field{text: anything, files: findsFiles(c.args())}
	for i := 0; i < len(args); i++ {
		if args[i].is(";") || args[i].many && strings.HasPrefix(args[i].text, anything) && !args[i].files {
			s.doubt(true, "words of %s that are not known may be -exec", c.base)
		}
		if !args[i].is("-exec", "-execdir", "-ok", "-okdir") {
			continue
		}
		end := i + 1
		for end < len(args) && !args[end].is(";") && !(args[end].is("+") && args[end-1].is("{}")) {
			end++
		}
		// find wants {} before +, but takes anything here: so does this.
		s.simple(substitute(trimPlus(args[i+1:end]), "{}", file), nil, false)
		i = end
	}
}

func trimPlus(fields []field) []field {
	if n := len(fields); n > 0 && fields[n-1].is("+") {
		return fields[:n-1]
	}
	return fields
}

// parallel joins its words and gives them to a shell for each argument.
func (s *scope) parallel(c call) {
	g := grammar{
		short: "jSaNnLlIPdCEsrDi",
		long:  "jobs sshlogin arg-file max-args max-lines delay timeout retries joblog results workdir colsep arg-sep delimiter halt load memfree nice tmpdir max-replace-args max-procs tagstring wd rpl bar-format block recstart recend",
	}
	_, rest, sure := g.options(c.args())
	if !sure {
		s.doubt(true, "it cannot be told which of its words parallel runs")
	}
	end := slices.IndexFunc(rest, func(f field) bool { return strings.HasPrefix(f.text, ":::") })
	if end < 0 {
		end = len(rest)
	}
	code := joined(rest[:end])
	if code.text == "" {
		s.doubt(true, "parallel takes whole commands from its input or arguments")
		for _, f := range rest {
			if !strings.HasPrefix(f.text, ":::") {
				s.nested(f, []field{}, field{text: "sh"})
			}
		}
		return
	}
	for _, mark := range []string{"{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}", "{1}", "{2}", "{3}"} {
		code.text = strings.ReplaceAll(code.text, mark, anything)
	}
	if !strings.Contains(code.text, anything) {
		code.text += " " + anything
	}
	s.filled(code)
}

// filled judges shell code into which arguments are put, quoted, so that
// they cannot become commands unless they stand where one does.
func (s *scope) filled(code field) {
	marked := field{text: strings.ReplaceAll(code.text, anything, `"${__}"`)}
	s.nested(marked, []field{}, field{text: "sh"})
}
