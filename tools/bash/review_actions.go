package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// callChanges handles the actions diff, apply and discard of bash_job. It returns
// MISSING_PARAMETER without an id, INVALID_PARAMS for files to discard, and the errors of
// reviewer.find.
func (s *bashTool) callChanges(ctx context.Context, args jobArguments) (*mcpkit.Result, error) {
	fsys, err := s.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	if args.JobID == "" {
		return nil, toolerr.New(toolerr.MissingParameter, "job_id is missing: give the id of the changes, which the answer of bash and {\"action\":\"list\"} show")
	}
	set, err := s.review.find(fsys, args.JobID)
	if err != nil {
		return nil, err
	}
	switch args.Action {
	case "diff":
		return diffResult(ctx, fsys, set, args.Files)
	case "discard":
		if len(args.Files) > 0 {
			return nil, toolerr.New(toolerr.InvalidParams, "discard drops all changes of %s: apply the files to keep, then discard the rest", set.ID())
		}
		if err := set.Discard(); err != nil {
			return nil, err
		}
		s.review.unsetCurrent(set)
		return &mcpkit.Result{Text: "discarded the changes " + set.ID() + "\n", Meta: meta{}}, nil
	}
	return s.applyChanges(fsys, set, args.Files)
}

// applyChanges applies changes to the roots, except those of protected files. files
// selects some; nil: all. If Apply fails, it returns its error together with a result that
// names the refused files and those that were applied before the error.
func (s *bashTool) applyChanges(fsys *sandbox.FS, set *changes.Set, files []string) (*mcpkit.Result, error) {
	runner, err := s.runner()
	if err != nil {
		return nil, err
	}
	roots, err := set.Roots()
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		list, err := set.Changes()
		if err != nil {
			return nil, err
		}
		files = fileNames(roots, list, files)
	}
	var report changes.Report
	var b strings.Builder
	b.WriteString(withWriteGuard(runner, fsys, func() { report, err = set.Apply(files, proc.WhyProtected(fsys)) }))
	for _, refused := range report.Refused {
		fmt.Fprintf(&b, "not applied: %s %s\n", fsys.Display(refused.Path), refused.Why)
	}
	if err != nil {
		b.WriteString(appliedBeforeError(fsys, roots, report.Applied))
		return &mcpkit.Result{Text: b.String(), Meta: meta{}}, err
	}
	if linked := linkedNames(fsys, roots, changes.Entries(report.Applied)); linked != "" {
		b.WriteString("hard links: a new content is in these names only, a new mode or time in their other names, too: " + linked + "\n")
	}
	applied := appliedText(report.Applied)
	fmt.Fprintf(&b, "applied %s of changes %s", cmp.Or(applied, "nothing"), set.ID())
	if report.Remaining > 0 {
		fmt.Fprintf(&b, "; %s of them left", textfmt.Count(report.Remaining, "change"))
	} else {
		s.review.unsetCurrent(set)
	}
	return &mcpkit.Result{Text: b.String() + "\n", Meta: meta{}}, nil
}

// appliedBeforeError returns a line that counts and names the changes that Apply made
// before it failed, "" if there are none.
func appliedBeforeError(fsys *sandbox.FS, roots []string, list []changes.Change) string {
	text := summarizeChanges(fsys, roots, changes.Entries(list))
	if text == "" {
		return ""
	}
	return "applied before the error: " + text + "\n"
}

// withWriteGuard calls write, which writes what commands made into the roots,
// and reverts what would be reverted after a command. It returns lines about
// the reverted files and about roots that were not guarded, "" if there are
// none.
func withWriteGuard(runner *proc.Runner, fsys *sandbox.FS, write func()) (lines string) {
	reverted, copyDirs, gaps := runner.WithWriteGuard(fsys, write)
	var b strings.Builder
	if len(reverted) > 0 {
		fmt.Fprintf(&b, "%s\n", revertedText(fsys, reverted, copyDirs))
	}
	for _, gap := range gaps {
		fmt.Fprintf(&b, "%s\n", unguardedText(gap))
	}
	return b.String()
}

// appliedText counts applied changes: "2 created, 1 deleted"; "the times of 1 file"
// if only times differed, and "" for none.
func appliedText(list []changes.Change) string {
	counts := map[changes.Kind]int{}
	for _, e := range changes.ShownEntries(changes.Entries(list)) {
		counts[e.Kind]++
	}
	var parts []string
	for _, kind := range []changes.Kind{changes.Created, changes.Modified, changes.Deleted} {
		if counts[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	if len(parts) == 0 {
		touched := 0
		for _, c := range list {
			if isRelevant(c.Entry) {
				touched++
			}
		}
		if touched > 0 {
			return "the times of " + textfmt.Count(touched, "file")
		}
	}
	return strings.Join(parts, ", ")
}

// listChanges describes the pending changes of the roots, one set a line; "" in
// mode keep, and if they cannot be read.
func (s *bashTool) listChanges(ctx context.Context) string {
	if s.review.mode == keepChanges {
		return ""
	}
	fsys, err := s.box.FS(ctx)
	if err != nil {
		return ""
	}
	store, err := s.review.store()
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, set := range store.List(writableRoots(fsys)) {
		roots, err := set.Roots()
		if err != nil {
			continue // applied or discarded meanwhile
		}
		list, err := set.Changes()
		text := summarizeChanges(fsys, roots, changes.Entries(list))
		if err != nil {
			text = err.Error()
		}
		fmt.Fprintf(&b, "changes %s  %s\n", set.ID(), cmp.Or(text, "none yet"))
	}
	return b.String()
}
