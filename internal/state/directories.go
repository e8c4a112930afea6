package state

// CommandTempsDir creates the directory for private temporary directories of commands. It
// is in no root as commands see it, so that commands cannot reach each other's
// files.
func (s *Store) CommandTempsDir() (string, error) { return s.makeSubdir("tmp-1") }

// HiddenPathsDir creates the directory for the command runner's records of hidden paths.
func (s *Store) HiddenPathsDir() (string, error) { return s.makeSubdir("hidden-1") }

// PendingChangesDir creates the directory for changes of commands that nobody has
// applied or discarded yet.
func (s *Store) PendingChangesDir() (string, error) { return s.makeSubdir("changes-1") }

// RootSnapshotsDir creates the directory for the snapshots with which roots are compared
// after commands.
func (s *Store) RootSnapshotsDir() (string, error) { return s.makeSubdir("watch-1") }

// CommandUndoDir creates the directory for the undo records of commands.
func (s *Store) CommandUndoDir() (string, error) { return s.makeSubdir("commands-1") }

// CommandCachesDir creates the directory for data that commands keep between runs, such
// as build caches.
func (s *Store) CommandCachesDir() (string, error) { return s.makeSubdir("cache-1") }
