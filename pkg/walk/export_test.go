package walk

// WithMaxOpen bounds the directories kept open, so that tests need not make
// hundreds.
func (o Options) WithMaxOpen(n int) Options {
	o.maxOpen = n
	return o
}
