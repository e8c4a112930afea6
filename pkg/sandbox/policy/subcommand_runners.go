package policy

import (
	"slices"
	"strings"
)

// subcommandRunner is a program some of whose subcommands start another
// program: npm exec.
type subcommandRunner struct {
	subcommands string // separated by spaces
	operands    int    // words before the command
}

// subcommandRunners are the programs with subcommands that start another
// program.
var subcommandRunners = map[string]subcommandRunner{
	"uv": {"run", 0}, "poetry": {"run", 0}, "pdm": {"run", 0}, "hatch": {"run", 0}, "pipenv": {"run", 0}, "rye": {"run", 0}, "pixi": {"run", 0},
	"conda": {"run", 0}, "mamba": {"run", 0}, "npm": {"exec x", 0}, "pnpm": {"exec dlx", 0}, "yarn": {"exec dlx run", 0}, "bundle": {"exec", 0},
	"pyenv": {"exec", 0}, "rbenv": {"exec", 0}, "nodenv": {"exec", 0}, "opam": {"exec", 0}, "stack": {"exec", 0}, "cabal": {"exec", 0},
	"perf": {"stat record trace", 0}, "volta": {"run", 0}, "devbox": {"run", 0}, "mise": {"exec x", 0}, "asdf": {"exec", 0},
	"rustup": {"run", 1}, "direnv": {"exec", 1}, "nvm": {"exec", 1},
}

// startedCommand returns the command that is started, or nil if nothing is. The
// word after an option may be its value or the command: it returns the first
// reading, and checks the second itself.
func (r subcommandRunner) startedCommand(s *shellText, args []field) (command []field) {
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
		s.checkCommand(args[1:], nil, false)
	}
	return args
}
