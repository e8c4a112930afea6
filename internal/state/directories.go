package state

// CommandTemps creates the directory for private temporary directories of commands. It
// is in no root as commands see it, so that commands cannot reach each other's
// files.
func (s *Store) CommandTemps() (string, error) { return s.makeSubdir("tmp-1") }

// HiddenPaths creates the directory for the command runner's records of hidden paths.
func (s *Store) HiddenPaths() (string, error) { return s.makeSubdir("hidden-1") }

// PendingChanges creates the directory for changes of commands that nobody has
// applied or discarded yet.
func (s *Store) PendingChanges() (string, error) { return s.makeSubdir("changes-1") }

// RootSnapshots creates the directory for the snapshots with which roots are compared
// after commands.
func (s *Store) RootSnapshots() (string, error) { return s.makeSubdir("watch-1") }

// CommandUndo creates the directory for the undo records of commands.
func (s *Store) CommandUndo() (string, error) { return s.makeSubdir("commands-1") }

// CommandCaches creates the directory for data that commands keep between runs, such
// as build caches.
func (s *Store) CommandCaches() (string, error) { return s.makeSubdir("cache-1") }
