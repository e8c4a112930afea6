package index

import "time"

// PieceSize is where texts have seams.
const PieceSize = pieceSize

// StepClock tells the index how far wall and monotonic clock are from its
// beginning, as a search does.
func (x *Index) StepClock(wall, monotonic time.Duration) {
	if x.clock.steppedBack(wall, monotonic) {
		x.clear()
	}
}

// AddPausing is Add with a pause between pieces.
func (x *Index) AddPausing(k Key, taken time.Time, text []byte, pause func() error) error {
	return x.add(Content{Key: k, Taken: taken, Text: text}, pause)
}
