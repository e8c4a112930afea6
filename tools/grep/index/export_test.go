package index

import "time"

// PieceSize is the distance of the boundaries in large texts.
const PieceSize = pieceSize

// StepClock passes the times elapsed on the wall and the monotonic clock to the
// index, as a search does.
func (x *Index) StepClock(wall, monotonic time.Duration) {
	if x.clock.hasSteppedBack(wall, monotonic) {
		x.clear()
	}
}

// AddPausing is Add with a pause between pieces.
func (x *Index) AddPausing(k Key, taken time.Time, text []byte, pause func() error) error {
	return x.add(Content{Key: k, Taken: taken, Text: text}, pause)
}
