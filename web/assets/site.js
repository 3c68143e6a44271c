// What pages do beyond what they do without script.
