package main

import (
	"context"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// otherToolArguments are arguments of other tools that mean the opposite of an
// argument here, or one of its values. The schema does not show them.
type otherToolArguments struct {
	CaseSensitive *bool `json:"case_sensitive,omitempty" alias:"match_case" hidden:"true"`
	IsRegexp      *bool `json:"is_regexp,omitempty" alias:"is_regex,use_regex,regex,regexp" hidden:"true"`
	Respect       *bool `json:"respect_git_ignore,omitempty" alias:"respect_gitignore" hidden:"true"`
	FilesOnly     bool  `json:"files_with_matches,omitempty" alias:"-l,l,files_only" hidden:"true"`
	CountOnly     bool  `json:"count,omitempty" alias:"-c,count_only" hidden:"true"`
}

// translate converts arguments of other tools to this tool's arguments, and
// notes that in the answer. It returns INVALID_PARAMS if arguments contradict
// each other.
func (a *arguments) translate(ctx context.Context) error {
	if a.HeadLimit == 0 || a.HeadLimit > maxHeadLimit {
		a.HeadLimit, a.unlimited = maxHeadLimit, true
	}
	switch {
	case a.CaseSensitive != nil && *a.CaseSensitive && a.IgnoreCase:
		return toolerr.New(toolerr.InvalidParams, "case_sensitive and -i contradict each other: give only -i")
	case a.FilesOnly && a.CountOnly:
		return toolerr.New(toolerr.InvalidParams, "-l and -c contradict each other: give only output_mode")
	}
	if a.CaseSensitive != nil && !*a.CaseSensitive {
		a.IgnoreCase = true
		mcpkit.NoteFirstf(ctx, "case_sensitive=false taken as -i")
	}
	if a.IsRegexp != nil && !*a.IsRegexp {
		a.Literal = true
		mcpkit.NoteFirstf(ctx, "regex=false taken as literal")
	}
	if a.Respect != nil {
		a.NoIgnore = !*a.Respect
	}
	for mode, asked := range map[string]bool{modeFiles: a.FilesOnly, modeCount: a.CountOnly} {
		if asked && a.OutputMode != mode {
			a.OutputMode = mode
			mcpkit.NoteFirstf(ctx, "taken as output_mode=%s", mode)
		}
	}
	return nil
}
