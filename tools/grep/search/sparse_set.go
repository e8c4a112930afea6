package search

// sparseSet is a set of small numbers that can be emptied in constant time.
type sparseSet struct {
	dense []int32 // the members
	index []int32 // the index in dense of each member; any value for other numbers
}

// setMax makes the set empty, for members below n.
func (s *sparseSet) setMax(n int) { s.index = make([]int32, n) }

// clear empties the set.
func (s *sparseSet) clear() { s.dense = s.dense[:0] }

// add adds n and reports whether it is new.
func (s *sparseSet) add(n int32) bool {
	if i := s.index[n]; int(i) < len(s.dense) && s.dense[i] == n {
		return false
	}
	s.index[n] = int32(len(s.dense))
	s.dense = append(s.dense, n)
	return true
}
