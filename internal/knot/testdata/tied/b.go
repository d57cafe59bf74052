package tied

func (s *Session) two() { s.three() }

func apart[T any](T) {}
