package policy

// program judges what a program may run by its own means: interpreters, and
// options whose value is a command.
func (s *scope) program(c call) {
	if c.function || c.dir == "" && s.builtinCode(c) {
		return
	}
	args := c.args()
	if len(args) == 1 && args[0].is("--version", "-version", "-V", "-v", "--help", "-h", "version", "help") {
		return
	}
	switch c.base {
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		s.awk(c)
		return
	case "sed", "gsed":
		s.sed(c)
		return
	case "git":
		s.git(c)
		return
	case "go":
		if len(args) > 0 && args[0].is("run", "generate", "tool") && !s.ruled(c) {
			s.doubt(false, "go %s runs what files say", args[0].text)
		}
	}
	s.commandOptionsOf(c)
	if otherShell(c.base) {
		s.doubt(true, "%s is a shell of another grammar", c.base)
	}
	s.interpreter(c)
	s.carried(c)
}
