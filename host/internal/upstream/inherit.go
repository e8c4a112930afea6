package upstream

import "maps"

// Inherit copies the log level and the resource subscriptions of the server that this
// one replaces. It must be called before the first use.
func (s *Server) Inherit(old *Server) {
	old.mu.Lock()
	level, watched := old.level, maps.Clone(old.subscribed)
	old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level, s.subscribed = level, watched
}
