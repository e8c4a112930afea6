package chat_test

import (
	"strings"
	"testing"
)

// Who is asked about more than can be seen at once is told so.
func TestALongCallIsSaidToBeLong(t *testing.T) {
	b := newBench(t, nil)
	b.prompted()
	b.press("call guarded 1\r")
	b.seen("Allow it? ")
	b.press("n")
	b.prompted()
	b.press("call guarded \x1b[200~" + strings.Repeat("x", 5000) + "\x1b[201~\r")
	b.seen("Allow all 54 lines? ")
	b.press("n")
	b.quit()
}
