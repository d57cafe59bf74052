package main

// partialMessage is an incomplete message of the peer in parts.
type partialMessage struct {
	whole int64 // bytes
	frame []byte
}

// takePart records a Part, and returns the message that it completes, if any. fits is false for a
// part out of order.
func (p *player) takePart(list []any) (message []any, fits bool, err error) {
	if len(list) < 3 {
		return nil, false, nil
	}
	pipe, some := list[1], list[2]
	m, begun := p.parts[pipe]
	if first := len(list) == 4; first == begun {
		return nil, false, nil
	} else if first {
		whole, _ := list[3].(int64)
		m = &partialMessage{whole: whole}
		p.parts[pipe] = m
	}
	b, ok := some.([]byte)
	if !ok { // the message was given up
		delete(p.parts, pipe)
		return nil, some == nil, nil
	}
	m.frame = append(m.frame, b...)
	if int64(len(m.frame)) < m.whole {
		return nil, true, nil
	}
	delete(p.parts, pipe)
	if int64(len(m.frame)) > m.whole {
		return nil, false, nil
	}
	message, err = decode(m.frame)
	return message, err == nil, err
}
