package state

// CommandTempsDir creates the directory for the private temporary directories of
// commands, if necessary, and returns its path. It fails if no state is kept. Commands
// see it in no root, so that they cannot reach each other's files.
func (s *Store) CommandTempsDir() (string, error) { return s.makeSubdir("tmp-1") }

// HiddenPathsDir creates the directory for the command runner's records of hidden paths,
// if necessary, and returns its path. It fails if no state is kept.
func (s *Store) HiddenPathsDir() (string, error) { return s.makeSubdir("hidden-1") }

// PendingChangesDir creates the directory for changes of commands that were neither
// applied nor discarded yet, if necessary, and returns its path. It fails if no state is
// kept.
func (s *Store) PendingChangesDir() (string, error) { return s.makeSubdir("changes-1") }

// RootSnapshotsDir creates the directory for the snapshots with which roots are compared
// after commands, if necessary, and returns its path. It fails if no state is kept.
func (s *Store) RootSnapshotsDir() (string, error) { return s.makeSubdir("watch-1") }

// CommandUndoDir creates the directory for the undo records of commands, if necessary,
// and returns its path. It fails if no state is kept.
func (s *Store) CommandUndoDir() (string, error) { return s.makeSubdir("commands-1") }

// CommandCachesDir creates the directory for data that commands keep between runs, such
// as build caches, if necessary, and returns its path. It fails if no state is kept.
func (s *Store) CommandCachesDir() (string, error) { return s.makeSubdir("cache-1") }
