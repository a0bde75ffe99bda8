"""
Why "converged" can be off by 14 %
==================================

scikit-learn's ``SVC`` ends without a warning here.
"""

print(1)
