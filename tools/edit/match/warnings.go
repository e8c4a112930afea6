package match

import (
	"fmt"
	"strings"
)

// doubledTextWarning returns a warning if the new text contains the old text
// and the file already had the new text at the place. Otherwise it returns nil.
func (m *matcher) doubledTextWarning(e Edit, where place) []string {
	at := strings.Index(e.New, e.Old)
	if at < 0 || where.start-at < m.file.BodyStart {
		return nil
	}
	if end := where.start - at + len(e.New); end <= len(m.file.Text) && string(m.file.Text[where.start-at:end]) == e.New {
		return []string{fmt.Sprintf("new_string, which contains old_string, was already at line %d; it may now be there twice", m.file.LineNumberer()(where.start-at))}
	}
	return nil
}
