package main

import "errors"

// doors are those of a show. All wires that can be cut go through one of them.
type doors struct {
	wires    *wires // these are fixed
	replicas []*door
	all      *door // in front of all replicas: their one address
	exchange *door

	behind []string // addresses of the replicas, and last of the exchange
}

// openDoors opens doors in front of the given number of replicas, and of an exchange, which are not
// started yet.
func openDoors(replicas int) (ds *doors, err error) {
	ds = &doors{wires: newWires()}
	if ds.behind, err = freeAddrs(replicas + 1); err != nil {
		return ds, err
	}
	for _, addr := range ds.behind[:replicas] {
		d, err := newDoor(ds.wires, addr)
		if err != nil {
			return ds, err
		}
		ds.replicas = append(ds.replicas, d)
	}
	if ds.all, err = newDoor(ds.wires, ds.behind[:replicas]...); err != nil {
		return ds, err
	}
	ds.exchange, err = newDoor(ds.wires, ds.behind[replicas])
	return ds, err
}

// close shuts all doors, and ends all wires through them.
func (ds *doors) close() (err error) {
	if ds == nil {
		return nil
	}
	all := append(ds.replicas, ds.all, ds.exchange)
	for _, d := range all {
		if d != nil {
			err = errors.Join(err, d.shut())
		}
	}
	ds.wires.close()
	for _, d := range all {
		if d != nil {
			d.running.Wait()
		}
	}
	return err
}
