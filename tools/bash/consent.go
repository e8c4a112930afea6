package main

import (
	"context"
	"fmt"
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

// askUser asks the user to agree to text, which shows all that the agreement
// covers. An error (COMMAND_DENIED, or ctx's) means that the user did not agree.
func askUser(ctx context.Context, verdict policy.Verdict, text string) error {
	if lines := strings.Count(text, "\n") + 1; len(text) > maxQuestion || lines > maxQuestionLines {
		return deniedError(verdict, fmt.Sprintf("The user must see the whole call before it runs: it has %s in %s, and at most %s in %s can be shown. "+
			"Write the long part into a script file, so that the user can read it, and run the file. If the session has many variables, use a new session.",
			textfmt.Bytes(int64(len(text))), textfmt.Count(lines, "line"), textfmt.Bytes(maxQuestion), textfmt.Count(maxQuestionLines, "line")))
	}
	agreed, asked, err := mcpkit.Confirm(ctx, text)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case agreed:
		return nil
	case err != nil:
		return deniedError(verdict, "The user could not be asked: "+err.Error()+".")
	case asked:
		return deniedError(verdict, "The user was asked and did not agree: do not try to get the same result in another way.")
	}
	return deniedError(verdict, "This client cannot ask the user. Tell the user what the command is for, so that they can run it themselves or start the server without the rule.")
}

// deniedError returns COMMAND_DENIED with the verdict and why.
func deniedError(verdict policy.Verdict, why string) error {
	return toolerr.New(toolerr.CommandDenied, "%s %s", verdict.Message, why).With("policy", verdict.Metadata())
}

// commandQuestion shows every part of a call that affects its result, and the
// state that earlier calls of its session left. The first line gives the
// command's length and each of its lines is marked, so that the user sees where
// it ends and whether the client cut it.
func commandQuestion(args arguments, start commandStart, why string) string {
	var b strings.Builder
	shown := quoteLines(args.Command)
	fmt.Fprintf(&b, "Run this command (%s, %s)?\n\n%s", textfmt.Count(strings.Count(shown, "\n"), "line"), textfmt.Count(len(args.Command), "byte"), shown)
	if args.Stdin != "" {
		fmt.Fprintf(&b, "\nIts standard input:\n%s", quoteLines(args.Stdin))
	}
	if args.Background {
		b.WriteString("\nIt keeps running in the background. You will be asked about later input to it.\n")
	}
	if len(start.env) > 0 {
		b.WriteString("\nVariables:\n")
		for _, variable := range start.env {
			b.WriteString(quoteLines(variable))
		}
	}
	if len(start.unset) > 0 {
		b.WriteString("\nWithout the variables:\n" + quoteLines(strings.Join(start.unset, " ")))
	}
	b.WriteString("\nIn the directory:\n" + quoteLines(start.dir))
	return b.String() + "\n" + visible.Text(why)
}

// inputQuestion shows input to a running command that the user agreed to.
func inputQuestion(j *job, input string) string {
	shown := quoteLines(input)
	return fmt.Sprintf("Send this input (%s, %s) to job %s?\n\n%s\nThe job runs the command:\n%s\n%s",
		textfmt.Count(strings.Count(shown, "\n"), "line"), textfmt.Count(len(input), "byte"), j.id, shown,
		quoteLines(shorten(j.args.Command, 500)), visible.Text(j.verdict.Message))
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
