package proc

import (
	"cmp"
	"crypto/rand"
	"os"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// spec holds the supervisor's instructions for one command, and data that only
// the server needs.
type spec struct {
	supervise.Spec

	refusedVars  []string                        // for Result.RefusedVars
	gaps         []string                        // for Result.Gaps
	egress       *egressSocketPair               // nil without a proxy
	homes        []string                        // homes of this user, links resolved
	homeDirs     []string                        // searched directories in homes
	storeDirs    []string                        // searched directories of credential stores
	movedFiles   map[fileID]*os.File             // descriptors of hidden files that moved before
	hiddenLinks  map[fileID]int                  // hidden files in roots with several hard links, and how many
	severalLinks map[fileID]int                  // the same, with those outside the roots
	prologue     *os.File                        // nil without a prologue
	spillDir     string                          // for the command's output
	scannedDirs  map[string]map[string]*dirCache // directories as just read, by root and path
	undoDirs     []*os.File                      // the files counted by Spec.UndoFiles
}

type (
	// controlMessage and report are the messages between server and supervisor,
	// from package supervise.
	controlMessage = supervise.ControlMessage
	report         = supervise.Report
)

// closeFiles closes the files that are only needed to start the command.
func (s *spec) closeFiles() {
	s.egress.close()
	closeAll(s.prologue)
	closeAll(s.undoDirs...)
	for _, f := range s.movedFiles {
		f.Close()
	}
}

// filesToSend returns the files of c to send to the supervisor, in the order of
// their descriptors in the command.
func (s *spec) filesToSend(c Command, stdio [3]*os.File) []*os.File {
	files := append(stdio[:], c.Files...)
	if s.prologue != nil {
		files = append(files, s.prologue)
	}
	return append(s.appendMoved(s.egress.appendTo(files)), s.undoDirs...)
}

// makeSpec returns the supervisor's instructions for c. The caller must call
// closeFiles, except after an error.
func (r *Runner) makeSpec(c Command, level Level, temp privateTemp, moved *movedFiles) (_ *spec, err error) {
	s := &spec{Spec: supervise.Spec{
		Level: level, Network: r.config.Network, Dir: c.Dir, Mark: rand.Text(),
		Limits: r.config.Limits, GraceMS: r.config.Grace.Milliseconds(), WaitMS: r.config.Linger.Milliseconds(),
		Writable: r.config.Writable, Temp: temp.path, Layers: c.Layers, NoUnix: r.noUnixSockets, Watch: r.config.Watch,
	}, spillDir: cmp.Or(c.SpillDir, r.config.SpillDir)}
	defer func() {
		if err != nil {
			s.closeFiles()
		}
	}()
	if confinesFiles(level) {
		for _, root := range c.Rules.Roots() {
			s.Roots = append(s.Roots, supervise.Root(root))
		}
		s.Sockets = r.allowedSockets(level)
		if err := r.addHidden(s, c.Rules, moved); err != nil {
			return nil, err
		}
	}
	cacheDir, caches, err := r.makeBuildCaches(s.Roots)
	if err != nil {
		return nil, err
	}
	if len(caches) > 0 {
		s.Writable = append(slices.Clone(s.Writable), cacheDir)
	}
	inside := temp.pathForCommand(s.IsInsideRoot("/tmp"), level)
	environ := Environ{
		Base: r.passedEnv(), baseFiltered: true, pathCache: &r.searchPaths, Extra: c.Env, PassSecrets: r.config.PassSecrets,
		Set: append(temporaryVars(inside), "PWD="+c.Dir, supervise.MarkName+"="+s.Mark),
	}
	if !hasPrologue {
		c.Prologue = nil
	}
	before, err := s.addPrologue(c, inside)
	if err != nil {
		return nil, err
	}
	environ.Set = append(environ.Set, before...)
	if err := r.prepareEgress(s, &environ); err != nil {
		return nil, err
	}
	for _, root := range s.Roots {
		if !root.ReadOnly {
			environ.Writable = append(environ.Writable, root.Path)
		}
	}
	environ.Base = appendMissingCacheVars(environ.Base, caches, slices.Concat(environ.Writable, r.config.Writable))
	s.Env, s.refusedVars = environ.Build()
	if len(c.Program) > 0 {
		s.Argv = c.Program
		return s, nil
	}
	shell, err := FindShell(s.Env)
	if err != nil {
		return nil, err
	}
	s.Argv, err = shell.argv(c.Script)
	return s, err
}
