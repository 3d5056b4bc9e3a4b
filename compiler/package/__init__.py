"""Application packages: records, reader, writer and rules of the `.ipuexe` file."""
