"""MindSpore's propagation of strategies, reproduced: from configured operators to all others.

``network`` lists operators, edges and weights that several operators share; ``choices`` what each
operator may be given, and what that costs as the propagation reckons; ``prices`` what lies between
two layouts; ``spread`` the search itself: breadth first, operator by operator, never taken back.
"""
