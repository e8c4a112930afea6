package upstream

import "maps"

// Inherit takes over the log level, the resource subscriptions, the owners of the requests and
// the instance of the server that this one replaces: both can use the same shared process. It
// must be called before the first use.
func (s *Server) Inherit(old *Server) {
	old.mu.Lock()
	level, watched := old.level, maps.Clone(old.subscribed)
	old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level, s.subscribed, s.cfg.owners, s.cfg.instance = level, watched, old.cfg.owners, old.cfg.instance
}
