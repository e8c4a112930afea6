package policy

// checkProgram checks what a program can run by its own means: builtins that
// run text, interpreters, and options whose value is a command.
func (s *shellText) checkProgram(c simpleCommand) {
	if c.isFunction || c.progDir == "" && s.checkBuiltin(c) {
		return
	}
	args := c.args()
	if len(args) == 1 && args[0].is("--version", "-version", "-V", "-v", "--help", "-h", "version", "help") {
		return
	}
	switch c.progName {
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		s.checkAwk(c)
		return
	case "sed", "gsed":
		s.checkSed(c)
		return
	case "git":
		s.checkGit(c)
		return
	case "go":
		if len(args) > 0 && args[0].is("run", "generate", "tool") && !s.isAllowedByRule(c) {
			s.addDoubt(false, "go %s runs what files say", args[0].text)
		}
	}
	s.checkCommandOptions(c)
	if isOtherShell(c.progName) {
		s.addDoubt(true, "%s is a shell with another syntax", c.progName)
	}
	s.addForeignCodeDoubt(c)
	s.checkCarriedCommands(c)
}
