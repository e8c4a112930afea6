package upstream

import "maps"

// Inherit takes over what was asked of the server that this one replaces: the
// level of its log messages, and the resources that are subscribed to. Call it
// before first use.
func (s *Server) Inherit(old *Server) {
	old.mu.Lock()
	level, watched := old.level, maps.Clone(old.watched)
	old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level, s.watched = level, watched
}
