"""The hunt for changed files that the verifier accepts although their bound no longer holds.

file        a saved network as header and arrays, and where things are in it
changes     one to three changes at random, of those in weights, structure and words
named       changes that checks have once accepted
search      inputs of the box at which the network errs most, by every arithmetic that the model allows
orders      the network in numpy: sums in any order, roundings at random
hunt        so many tamperings of a file, and which of those accepted are harmful
places      learners with other numbers in one place, or in two
"""
