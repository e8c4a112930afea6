package core

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A call that was refused before another one signed in does not sign in again.
func TestOneSignInForCallsThatWereRefusedBeforeIt(t *testing.T) {
	var s signIns
	early := s.count.Load()
	one, first := s.joinOrBegin("s", early)
	require.True(t, first)
	same, first := s.joinOrBegin("s", early)
	require.Equal(t, []any{one, false}, []any{same, first})
	s.finish("s", one, nil)
	<-one.done

	none, first := s.joinOrBegin("s", early)
	require.Nil(t, none)
	require.False(t, first)
	_, first = s.joinOrBegin("other", early)
	require.True(t, first, "it is a sign-in to another server")

	again, first := s.joinOrBegin("s", s.count.Load())
	require.True(t, first, "the server has refused the call after the sign-in")
	s.finish("s", again, errors.New("the user has closed the page"))
	_, first = s.joinOrBegin("s", s.count.Load())
	require.True(t, first)
}
