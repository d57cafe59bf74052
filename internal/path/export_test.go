package path

func (m *Model) Phase() int { return int(m.phase) }
