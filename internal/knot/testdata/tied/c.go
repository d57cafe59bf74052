package tied

func (s Session) three() { apart(start) }
