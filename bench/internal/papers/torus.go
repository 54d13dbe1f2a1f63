package papers

// Torus is a network of nodes in rings along each of its dimensions, as those of the machines of the
// spike-exchange report: three dimensions of a Cray XE6 and a Blue Gene/P, five of a Blue Gene/Q.
type Torus struct {
	Sides []int `json:"sides"`
	Nodes int   `json:"nodes"`
	// MeanHops and MostHops are of the shortest ways from a node to each other, by dimension order.
	MeanHops float64 `json:"mean_hops"`
	MostHops int     `json:"most_hops"`
	// Bisection is how many links join two halves of the nodes, cut across the longest side.
	Bisection int `json:"bisection_links"`
}

// TorusOf computes a torus with so many nodes along each dimension, each at least 1.
func TorusOf(sides ...int) Torus {
	t := Torus{Sides: sides, Nodes: 1}
	sum, longest := 0.0, 1
	for _, n := range sides {
		t.Nodes *= n
		t.MostHops += n / 2
		sum += float64(n/2*((n+1)/2)) / float64(n) // over all distances in a ring, its own node included
		longest = max(longest, n)
	}
	if t.Nodes > 1 {
		t.MeanHops = sum * float64(t.Nodes) / float64(t.Nodes-1)
	}
	switch across := t.Nodes / longest; {
	case longest > 2:
		t.Bisection = 2 * across
	case longest == 2: // one link joins both
		t.Bisection = across
	}
	return t
}
