package search

// sparse is a set of small numbers that can be emptied in constant time.
type sparse struct {
	dense []int32
	index []int32
}

func (s *sparse) resize(n int) { s.index = make([]int32, n) }

func (s *sparse) clear() { s.dense = s.dense[:0] }

// add adds n and reports whether it is new.
func (s *sparse) add(n int32) bool {
	if i := s.index[n]; int(i) < len(s.dense) && s.dense[i] == n {
		return false
	}
	s.index[n] = int32(len(s.dense))
	s.dense = append(s.dense, n)
	return true
}
