"""Maximum flow through layers of tokens: Dinic's algorithm, on capacities that are real numbers."""

import numpy as np

# Less than this is no capacity: rounding, which would make for endless tiny paths.
_NOTHING = 1e-12


class Network:
    """Layers of nodes; `capacities[layer]` [node, node below] lead from layer + 1 down to layer.

    Flow may go back up where it came down, which is what makes the result a maximum.
    """

    def __init__(self, capacities: np.ndarray):
        self.n_layers, self.n = capacities.shape[:2]
        self.capacities = capacities
        self._ends: list[int] = []  # of each edge where it ends; edge ^ 1 is its reverse
        self._edges: list[list[int]] = [[] for _ in range((self.n_layers + 1) * self.n)]
        room: list[float] = []
        for layer, row, column in zip(*np.nonzero(capacities > _NOTHING), strict=True):
            above, below = int((layer + 1) * self.n + row), int(layer * self.n + column)
            self._edges[above].append(len(room))
            self._edges[below].append(len(room) + 1)
            self._ends += [below, above]
            room += [float(capacities[layer, row, column]), 0.0]
        self._room = room

    def flow(self, top: int, bottom: int) -> float:
        """The most that gets from a node of the top layer to one of the bottom layer."""
        room, source = self._room.copy(), self.n_layers * self.n + top
        # No more than leaves the one or enters the other; once that is reached nothing need be searched.
        most = float(min(self.capacities[-1, top].sum(), self.capacities[0, :, bottom].sum()))
        total = 0.0
        while total < most - _NOTHING:
            levels = self._levels(room, source, bottom)
            if levels[bottom] < 0:
                break
            places = [0] * len(self._edges)
            while (pushed := self._push(room, levels, places, source, bottom)) > 0.0:
                total += pushed
        return total

    def _levels(self, room: list[float], source: int, sink: int) -> list[int]:
        """How many edges each node is away from the source; −1 where it cannot be reached."""
        levels, here = [-1] * len(self._edges), [source]
        levels[source] = depth = 0
        while here and levels[sink] < 0:
            depth, following = depth + 1, []
            for node in here:
                for edge in self._edges[node]:
                    end = self._ends[edge]
                    if levels[end] < 0 and room[edge] > _NOTHING:
                        levels[end] = depth
                        following.append(end)
            here = following
        return levels

    def _push(self, room: list[float], levels: list[int], places: list[int], source: int, sink: int) -> float:
        """Send what one shortest path takes; 0 when there is none left. `places` are edges known to lead nowhere."""
        path: list[int] = []
        node = source
        while node != sink:
            edges, place = self._edges[node], places[node]
            while place < len(edges):
                edge = edges[place]
                if room[edge] > _NOTHING and levels[self._ends[edge]] == levels[node] + 1:
                    break
                place += 1
            places[node] = place
            if place < len(edges):
                path.append(edges[place])
                node = self._ends[edges[place]]
            elif path:
                node = self._ends[path.pop() ^ 1]
                places[node] += 1
            else:
                return 0.0
        amount = min(room[edge] for edge in path)
        for edge in path:
            room[edge] -= amount
            room[edge ^ 1] += amount
        return amount
