package walk

import "time"

// WithMaxOpen bounds the open directories, so that tests need not make
// hundreds.
func (o Options) WithMaxOpen(n int) Options {
	o.maxOpen = n
	return o
}

// WithGrain makes the cache keep directories changed longer than d ago, so that
// tests need not wait for seconds.
func (c *Cache) WithGrain(d time.Duration) *Cache {
	c.grain = d
	return c
}

// Held returns the numbers of cached directories and bytes.
func (c *Cache) Held() (dirs, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, generation := range []map[cacheKey]*listing{c.young, c.old} {
		dirs += len(generation)
		for _, l := range generation {
			bytes += l.size
		}
	}
	return dirs, bytes
}
