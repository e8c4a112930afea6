package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/internal/visible"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The bounds of a question to the user. The user agrees to a whole call, so a
// call that takes more space is refused: clients cut or scroll longer messages.
const (
	maxQuestion      = 6 << 10 // bytes, including escapes
	maxQuestionLines = 80
)

// checkPolicy checks a call's command against the policy and asks the user if a
// rule says so. An error (COMMAND_DENIED, or ctx's) means that the command must
// not run.
func (s *shell) checkPolicy(ctx context.Context, args arguments) (policy.Verdict, error) {
	verdict := s.policy.Check(args.Command)
	if err := verdict.Err(); err != nil || verdict.Decision != policy.Ask {
		return verdict, err
	}
	text := questionText(args, verdict.Message)
	if lines := strings.Count(text, "\n") + 1; len(text) > maxQuestion || lines > maxQuestionLines {
		return verdict, deniedError(verdict, fmt.Sprintf("The user would have to be shown all of it, which is %s in %s; at most %s in %s can be shown. "+
			"Write the long part into a script file, which the user can look at, and run that.",
			textfmt.Bytes(int64(len(text))), textfmt.Count(lines, "line"), textfmt.Bytes(maxQuestion), textfmt.Count(maxQuestionLines, "line")))
	}
	agreed, asked, err := mcpkit.Confirm(ctx, text)
	switch {
	case ctx.Err() != nil:
		return verdict, ctx.Err()
	case agreed:
		return verdict, nil
	case err != nil:
		return verdict, deniedError(verdict, "The user could not be asked: "+err.Error()+".")
	case asked:
		return verdict, deniedError(verdict, "The user was asked and did not agree: do not try it in another way.")
	}
	return verdict, deniedError(verdict, "This client cannot ask the user. Tell the user what it is for, so that they run it themselves or start the server without the rule.")
}

// deniedError returns COMMAND_DENIED with the verdict and why.
func deniedError(verdict policy.Verdict, why string) error {
	return toolerr.New(toolerr.CommandDenied, "%s %s", verdict.Message, why).With("policy", verdict.Metadata())
}

// questionText shows every part of a call that affects its result. The first
// line gives the command's length and each of its lines is marked, so that the
// user sees where it ends and whether the client cut it.
func questionText(args arguments, why string) string {
	var b strings.Builder
	shown := quoteLines(args.Command)
	fmt.Fprintf(&b, "Run this command (%s, %s)?\n\n%s", textfmt.Count(strings.Count(shown, "\n"), "line"), textfmt.Count(len(args.Command), "byte"), shown)
	if args.Stdin != "" {
		fmt.Fprintf(&b, "\nIts standard input:\n%s", quoteLines(args.Stdin))
	}
	if len(args.Env) > 0 {
		b.WriteString("\nVariables:\n")
		for _, name := range slices.Sorted(maps.Keys(args.Env)) {
			b.WriteString(quoteLines(name + "=" + args.Env[name]))
		}
	}
	if args.Workdir != "" {
		b.WriteString("\nIn the directory:\n" + quoteLines(args.Workdir))
	}
	return b.String() + "\n" + visible.Text(why)
}

// quoteLines returns text with hidden characters escaped, long runs of blanks
// counted, and "> " before each line.
func quoteLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(visible.CollapseBlanks(visible.Text(text))) {
		b.WriteString("> " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}
