package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
)

// unknownCommand returns the error for a word that is no subcommand of cmd, with the
// most similar subcommand.
func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	near := dialect.Nearest(word, names)
	if begin := cmd.SuggestionsFor(word); near == "" && len(begin) > 0 { // names that begin with word
		near = "; did you mean " + joinOr(begin) + "?"
	}
	return withStatus(exitUsage, withAdvice(fmt.Errorf("unknown command %q%s", word, near), cmd.CommandPath()+" --help lists the commands"))
}

// joinOr joins words to "a, b or c".
func joinOr(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// withAdvice adds advice to an error, separated by a semicolon, or by a space after a question.
func withAdvice(err error, advice string) error {
	if strings.HasSuffix(err.Error(), "?") {
		return fmt.Errorf("%w %s", err, advice)
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// noArguments returns a usage error for arguments of a command that has only subcommands.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return nil
}

// argumentCount returns a check for cobra that a command has least to most arguments.
func argumentCount(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return fmt.Errorf("missing argument: %s", cmd.UseLine())
		}
		if len(args) > most {
			return fmt.Errorf("unexpected argument %q: %s", args[most], cmd.UseLine())
		}
		return nil
	}
}

// unknownFlag returns the error for an unknown flag with the most similar flag, and other errors
// unchanged. It recognizes a long flag with one dash. For a wrong value, it says what the flag accepts.
func unknownFlag(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return badFlagValue(err)
	}
	word, shown := missing.GetSpecifiedName(), err.Error()
	if short := missing.GetSpecifiedShortnames(); short != "" {
		word, _, _ = strings.Cut(short, "=")
		shown = "unknown flag: -" + word
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
		if f.Name == word {
			err = fmt.Errorf("%s; did you mean --%s?", shown, word)
		}
	})
	if near := dialect.Nearest(word, names); near != "" {
		err = fmt.Errorf("%s%s", shown, strings.Replace(near, "did you mean ", "did you mean --", 1))
	}
	return err
}

// badFlagValue returns an error that says what a flag accepts, instead of pflag's error
// for a value of the wrong type.
func badFlagValue(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	f := invalid.GetFlag()
	want := map[string]string{"duration": "a duration, such as 10s or 24h", "int": "a whole number", "float64": "a number", "bool": "true or false"}[f.Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s %q: want %s", f.Name, invalid.GetValue(), want)
}

// addCompletion adds cobra's command for shell completion scripts.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd("") // argument: the command line, for programs that have no other command
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args = noArguments
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
